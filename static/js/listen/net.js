// Requests that go on until they are answered: a lost network is waited for, a server that refuses is believed.

const rest = (pause) => new Promise((resolve) => setTimeout(resolve, pause));

// Whose page this is: the server refuses what another person in the same browser would send with this one's answers.
let owner = "";
export function speakFor(listener) {
  owner = listener;
}

// GET as `kind` (json or arrayBuffer). Null when the server says no, or answers with an error four times over.
export async function get(url, kind, waiting, cache = "no-store") {
  for (let pause = 400, errors = 0; ; pause = Math.min(pause * 2, 15000)) {
    try {
      const answer = await fetch(url, url.includes("/sound/") ? { cache } : { cache, headers: { "X-Listener": owner } });
      if (answer.ok) return await answer[kind]();
      if (answer.status === 403) {
        location.reload();
        return new Promise(() => undefined);
      }
      errors += 1;
      if (answer.status === 404 || errors === 4) return null;
    } catch {
      // offline for a moment, or for five minutes
    }
    waiting();
    await rest(pause);
  }
}

// POST of one JSON object; the answer's status and body, or null without a network.
export async function post(url, csrf, body) {
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRFToken": csrf, "X-Listener": owner },
      body: JSON.stringify(body),
    });
    return { ok: answer.ok, status: answer.status, body: await answer.json().catch(() => ({})) };
  } catch {
    return null;
  }
}

// Sends until a 2xx comes. The body of the answer, or null where the server will never take it.
async function deliver(url, csrf, body, waiting) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 15000)) {
    const answer = await post(url, csrf, body);
    if (answer && answer.ok) return answer.body;
    if (answer && answer.status === 403) {
      // The page's key is out of date, as after a login in this browser. What was to be sent is kept; a fresh page sends it.
      location.reload();
      return new Promise(() => undefined);
    }
    if (answer && answer.status >= 400 && answer.status < 500 && answer.status !== 408 && answer.status !== 429) return null;
    waiting();
    await rest(pause);
  }
}

// Answers wait here until the server has acknowledged them; a reload or a lost network loses none. Where two people share a browser,
// each one's answers wait for their own return.

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
  await transact("readwrite", (store) => store.put({ ...vote, owner })).catch(() => undefined);
}

export async function waiting() {
  const stored = await transact("readonly", (store) => store.getAll()).catch(() => []);
  const mine = stored.filter((vote) => !vote.owner || vote.owner === owner).map(({ owner: _, ...vote }) => [vote.id, vote]);
  return [...new Map([...mine, ...memory]).values()];
}

// Sends one answer until it is acknowledged: what the server said, or null when it will never take it.
export async function send(vote, url, csrf, waitingChanged) {
  const answer = await deliver(url, csrf, vote, () => waitingChanged(1));
  memory.delete(vote.id);
  await transact("readwrite", (store) => store.delete(vote.id)).catch(() => undefined);
  waitingChanged(0);
  return answer;
}
