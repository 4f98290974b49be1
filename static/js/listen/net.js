// Requests that go on until they are answered: a lost network is waited for, a server that refuses is believed.

const rest = (pause) => new Promise((resolve) => setTimeout(resolve, pause));

// GET as `kind` (json or arrayBuffer). Null when the server says no, or answers with an error four times over.
export async function get(url, kind, waiting) {
  for (let pause = 400, errors = 0; ; pause = Math.min(pause * 2, 15000)) {
    try {
      const answer = await fetch(url, { cache: "no-store" });
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
      headers: { "Content-Type": "application/json", "X-CSRFToken": csrf },
      body: JSON.stringify(body),
    });
    return { ok: answer.ok, status: answer.status, body: await answer.json().catch(() => ({})) };
  } catch {
    return null;
  }
}

// Sends until a 2xx comes. The body of the answer, or null where the server will never take it.
export async function deliver(url, csrf, body, waiting) {
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
