// Answers wait here until the server has acknowledged them; a reload or a lost network loses none.

const NAME = "listening";
const STORE = "votes";

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function transact(mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, mode);
    const request = work(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = () => reject(transaction.error);
  }).finally(() => database.close());
}

// Where the browser keeps nothing (some private windows), memory has to do.
const memory = new Map();

export async function keep(vote) {
  memory.set(vote.id, vote);
  await transact("readwrite", (store) => store.put(vote)).catch(() => undefined);
}

export async function waiting() {
  const stored = await transact("readonly", (store) => store.getAll()).catch(() => []);
  return [...new Map([...stored.map((v) => [v.id, v]), ...memory]).values()];
}

async function drop(vote) {
  memory.delete(vote.id);
  await transact("readwrite", (store) => store.delete(vote.id)).catch(() => undefined);
}

// Sends one answer until it is acknowledged. Resolves to "stored" or "refused" (the server will never take it).
export async function send(vote, url, csrf, waitingChanged) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 15000)) {
    let answer = null;
    try {
      answer = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": csrf },
        body: JSON.stringify(vote),
      });
    } catch {
      answer = null;
    }
    if (answer && answer.ok) {
      await drop(vote);
      waitingChanged(0);
      return "stored";
    }
    if (answer && answer.status === 403) {
      // The page's key is out of date, as after a login in this browser. The vote is kept; a fresh page sends it.
      location.reload();
      return new Promise(() => undefined);
    }
    if (answer && answer.status >= 400 && answer.status < 500 && answer.status !== 408 && answer.status !== 429) {
      await drop(vote);
      waitingChanged(0);
      return "refused";
    }
    waitingChanged(1);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
