// The trial page: load a pair, hear both, answer, send, next. An answer is possible only while sound really runs.
import { get, keep, post, send, speakFor, waiting } from "./net.js";
import { Player } from "./player.js";

const page = document.querySelector("#trial");
const words = JSON.parse(document.querySelector("#words").textContent);
const urls = page.dataset;
const find = (name) => page.querySelector(`[data-role="${name}"]`);
const dialogs = { keys: document.querySelector("#keys"), remark: document.querySelector("#remark"), link: document.querySelector("#link") };
const players = { left: find("play-left"), right: find("play-right") };
const answers = { left: find("answer-left"), same: find("answer-same"), right: find("answer-right") };
const veil = document.querySelector("#veil");
const begin = document.querySelector("#begin");
const rest = document.querySelector("#rest");
const trouble = document.querySelector("#trouble");
// The comparison that came with the page. Its sound is fetched and decoded at once, before anybody presses anything.
const opening = JSON.parse(document.querySelector("#opening").textContent);
const FRESH = 600000;

const RATE = 24000;
const decoder = window.OfflineAudioContext && new OfflineAudioContext(1, 1, RATE); // decodes before anybody allowed sound
let context = null;
let player = null;
let remarks = null; // fetched once there is something to hear; without it answers go out bare
let trial = null;
let coming = null; // the next trial with its sound, fetched while this one is judged
let last = null; // key of the trial that was answered last
let choice = null;
let busy = true; // loading, sending, or reading what practice has to say
let note = "";
let shownAt = 0;
let done = 0;
let states = [];

const running = () => context && context.state === "running";
const heardBoth = () => player && player.enough("left") && player.enough("right");
const slow = () => { find("hint").textContent = words.retrying; };

function draw() {
  for (const side of ["left", "right"]) {
    const playing = Boolean(player && player.now && player.now.side === side);
    players[side].classList.toggle("playing", playing);
    players[side].disabled = !(player && player.ready) || busy;
    players[side].style.setProperty("--heard", player ? player.share(side).toFixed(3) : 0);
    players[side].setAttribute("aria-label", `${words.play[side]}${player && player.enough(side) ? `, ${words.heard}` : ""}`);
  }
  const open = running() && heardBoth() && !busy;
  for (const [name, button] of Object.entries(answers)) {
    button.disabled = !open;
    button.setAttribute("aria-pressed", String(choice === name));
  }
  find("switch").disabled = !(player && player.now) || busy;
  find("next").disabled = !(find("next").onclick || (open && choice));
  find("undo").hidden = !last || busy;
  if (!busy) find("hint").textContent = note || (heardBoth() ? (choice ? "" : words.answer) : words.listen);
}

function tick() {
  if (player) player.mark();
  draw();
  if (player && player.now) requestAnimationFrame(tick);
}

// A trial's two recordings, decoded; null when one of them can't be had.
async function sounds(of, cache) {
  const bytes = await Promise.all([of.left, of.right].map((side) => get(side, "arrayBuffer", slow, cache)));
  if (!bytes[0] || !bytes[1]) return null;
  try {
    const [left, right] = await Promise.all(bytes.map((b) => decoder.decodeAudioData(b)));
    return Math.abs(left.duration - right.duration) < 0.02 ? { left, right } : null;
  } catch {
    return null;
  }
}

async function fetchAhead() {
  const next = await get(urls.ahead, "json", () => undefined);
  if (!next || next.finished) return;
  const buffers = await sounds(next);
  if (buffers) coming = { trial: next, buffers };
}

function pauseCard(sittings) {
  rest.hidden = false;
  rest.querySelector("button").onclick = async () => {
    if (await post(urls.rested, urls.csrf, { sittings })) {
      rest.hidden = true;
      load();
    }
  };
  done = 0; // of the sitting that begins
  rest.querySelector("button").focus();
}

function show(next, buffers) {
  const practised = trial && trial.practice && !next.practice;
  trial = next;
  choice = null;
  states = [];
  note = practised ? words.begins : note;
  player.take(buffers);
  Object.assign(find("sentence"), { lang: trial.lang, dir: trial.dir, textContent: trial.sentence });
  find("more").hidden = true;
  if (remarks) remarks.begin(trial);
  find("voice").hidden = !trial.voice;
  find("practice").hidden = !trial.practice;
  done = Math.max(trial.done, done);
  find("bar").style.width = `${(100 * done) / Math.max(1, trial.total)}%`;
  find("count").textContent = trial.practice ? "" : words.count.replace("{n}", Math.min(done + 1, Math.max(trial.total, 1))).replace("{all}", Math.max(trial.total, 1));
  shownAt = performance.now();
  busy = false;
  draw();
}

// Shows what is to be judged now. What was fetched ahead is shown at once; the server is asked whether it agrees.
async function load(given = null) {
  busy = true;
  player.clear();
  draw();
  find("hint").textContent = words.loading;
  if (coming && !given) {
    const { trial: next, buffers } = coming;
    coming = null;
    show(next, buffers);
    const agreed = await get(urls.next, "json", slow);
    if (agreed && agreed.trial === next.trial) {
      fetchAhead();
      return;
    }
    if (!trial || trial.trial !== next.trial || busy) return; // answered meanwhile: the next round finds out
    return load(agreed);
  }
  const next = given || (await get(urls.next, "json", slow));
  if (!next) {
    setTimeout(load, 4000);
    return;
  }
  if (next.finished === "break") {
    pauseCard(next.sittings);
    return;
  }
  if (next.finished === "sound") {
    trouble.hidden = false;
    trouble.querySelector("button").focus();
    return;
  }
  if (next.finished) {
    location.assign(urls.thanks);
    return;
  }
  const buffers = await sounds(next);
  if (!buffers) {
    find("hint").textContent = words.missing;
    await post(urls.undeliverable, urls.csrf, { trial: next.trial });
    setTimeout(load, 1500);
    return;
  }
  show(next, buffers);
  fetchAhead();
}

async function fetchRemarks() {
  const { Remarks } = await import("./remarks.js");
  remarks = new Remarks(words, find, dialogs.remark);
  remarks.begin(trial);
  if (choice) remarks.open(choice);
}

function play(side) {
  if (!player || !player.ready || busy) return;
  if (player.now && player.now.side === side) player.stop();
  else player.play(side);
  requestAnimationFrame(tick);
}

async function playVoice() {
  const bytes = await get(trial.voice, "arrayBuffer", slow);
  if (!bytes) return;
  player.stop();
  const source = context.createBufferSource();
  source.buffer = await context.decodeAudioData(bytes);
  source.connect(context.destination);
  source.start();
}

function answer(name) {
  if (answers[name].disabled) return;
  choice = name;
  note = "";
  if (remarks) remarks.open(name);
  else fetchRemarks().catch(() => undefined); // it could not be had before
  draw();
}

// crypto.randomUUID exists only over https; a phone on the local network has none.
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

const client = () => ({
  width: innerWidth, height: innerHeight, ratio: devicePixelRatio, touch: navigator.maxTouchPoints || 0,
  rate: context.sampleRate, agent: navigator.userAgent.slice(0, 120), lang: navigator.language,
});

const outboxChanged = (n) => { find("outbox").textContent = n ? words.waiting : ""; };

async function confirm() {
  if (find("next").disabled) return;
  if (find("next").onclick) {
    find("next").onclick();
    return;
  }
  busy = true;
  player.stop();
  const log = {
    ...player.log(), seconds: Number(((performance.now() - shownAt) / 1000).toFixed(1)),
    sound_breaks: states.length, states, client: client(),
  };
  const vote = { id: uuid(), trial: trial.trial, choice, strength: remarks ? remarks.strength : "", tags: remarks ? remarks.tags : [], log };
  draw();
  await keep(vote);
  const answered = await send(vote, urls.vote, urls.csrf, outboxChanged);
  last = answered && !trial.practice ? trial.trial : null;
  if (answered && !trial.practice) done += 1;
  note = answered ? "" : words.refused;
  if (answered && answered.feedback) {
    find("hint").textContent = answered.feedback;
    find("next").onclick = () => { find("next").onclick = null; load(); };
    draw();
    find("next").focus();
    return;
  }
  await load();
}

async function undo() {
  if (!last || busy) return;
  busy = true;
  player.stop();
  const answered = await post(urls.undo, urls.csrf, { trial: last });
  last = null;
  if (answered && answered.ok) {
    coming = null;
    done = Math.max(0, done - 1);
    note = words.undone;
    await load(answered.body);
    return;
  }
  busy = false;
  note = words.no_undo;
  draw();
}

async function elsewhere() {
  const answer = await get(urls.elsewhere, "json", slow);
  if (!answer) return;
  dialogs.link.querySelector("input").value = answer.link;
  dialogs.link.showModal();
}

function watchSound() {
  const silent = !running();
  if (silent && veil.hidden) {
    states.push(context.state);
    if (player) player.forget();
  }
  if (silent && player) player.stop();
  veil.hidden = !silent;
  if (silent) begin.focus();
  draw();
}

function build() {
  context = new AudioContext({ sampleRate: RATE });
  context.onstatechange = watchSound;
  if (player) player.context = context;
  else player = new Player(context, draw);
}

async function start() {
  begin.disabled = true;
  if (!context) build();
  await context.resume().catch(() => undefined);
  const before = context.currentTime;
  await new Promise((resolve) => setTimeout(resolve, trial ? 300 : 0));
  if (trial && running() && context.currentTime === before) {
    // Some phones hand back a clock that stands still after a call: only a new one runs.
    context.onstatechange = null;
    build();
    await context.resume().catch(() => undefined);
  }
  begin.disabled = false;
  watchSound();
  if (!running() || trial) return;
  if (navigator.wakeLock) navigator.wakeLock.request("screen").catch(() => undefined);
  const left = await unsent;
  for (const vote of left) await send(vote, urls.vote, urls.csrf, outboxChanged);
  const buffers = left.length || performance.now() > FRESH ? null : await early;
  if (buffers) {
    show(opening, buffers);
    fetchAhead();
  } else {
    await load();
  }
  fetchRemarks().catch(() => undefined);
}

const keys = {
  1: () => play("left"), 2: () => play("right"), s: () => player && player.switch(), " ": () => player && !busy && player.pause(),
  ArrowLeft: () => answer("left"), ArrowDown: () => answer("same"), ArrowRight: () => answer("right"), Enter: confirm, z: undo,
  "?": () => dialogs.keys.showModal(),
};
document.addEventListener("keydown", (event) => {
  const shut = !veil.hidden || !rest.hidden || !trouble.hidden || Object.values(dialogs).some((d) => d.open);
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || shut) return;
  if (event.target.matches("input, textarea, select")) return;
  if ((event.key === "Enter" || event.key === " ") && event.target.matches("button, a") && event.target !== find("next")) return;
  const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
  requestAnimationFrame(tick);
});
for (const side of ["left", "right"]) players[side].addEventListener("click", () => play(side));
for (const name of Object.keys(answers)) answers[name].addEventListener("click", () => answer(name));
for (const name of ["slightly", "clearly"]) find(name).addEventListener("click", () => remarks.say(name));
find("whole").addEventListener("click", () => remarks.ask(null, ""));
find("switch").addEventListener("click", () => { player.switch(); requestAnimationFrame(tick); });
find("next").addEventListener("click", () => { if (!find("next").onclick) confirm(); });
find("undo").addEventListener("click", undo);
find("voice").addEventListener("click", playVoice);
trouble.querySelector("button").addEventListener("click", () => location.reload());
document.querySelector("#show-keys").addEventListener("click", () => dialogs.keys.showModal());
const link = document.querySelector("#show-link"); // not where a platform's link is all that says who this is
if (link) link.addEventListener("click", elsewhere);

// The page's head asked for the sound already: `default` takes what came, `no-store` would ask again.
const early = window.AudioContext && opening ? sounds(opening, "default") : null;
speakFor(urls.listener);
const unsent = waiting();
if (early) early.then(() => performance.mark("decoded"));
if (window.AudioContext) {
  begin.addEventListener("click", start);
  begin.disabled = false;
  begin.focus();
} else {
  document.querySelector("#needs").hidden = false;
  begin.hidden = true;
}
