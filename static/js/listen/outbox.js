// Answers wait here until the server has acknowledged them; a reload or a lost network loses none. Where two people share a browser,
// each one's answers wait for their own return.
import { deliver } from "./net.js";

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

export async function keep(vote, owner) {
  memory.set(vote.id, vote);
  await transact("readwrite", (store) => store.put({ ...vote, owner })).catch(() => undefined);
}

export async function waiting(owner) {
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
