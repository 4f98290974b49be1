// The trial page: load a pair, hear both, answer, send, next. An answer is possible only while sound really runs.
import { Player } from "./player.js";
import { keep, send, waiting } from "./outbox.js";

const page = document.querySelector("#trial");
const words = JSON.parse(document.querySelector("#words").textContent);
const urls = page.dataset;
const find = (name) => page.querySelector(`[data-role="${name}"]`);
const players = { left: find("play-left"), right: find("play-right") };
const answers = { left: find("answer-left"), same: find("answer-same"), right: find("answer-right") };
const veil = document.querySelector("#veil");
const begin = document.querySelector("#begin");

let context = null;
let player = null;
let trial = null;
let choice = null;
let sending = false;
let shownAt = 0;
let breaks = 0;

const running = () => context && context.state === "running";
const heardBoth = () => player && player.enough("left") && player.enough("right");

function draw() {
  for (const side of ["left", "right"]) {
    const playing = Boolean(player && player.now && player.now.side === side);
    players[side].classList.toggle("playing", playing);
    players[side].disabled = !(player && player.ready) || sending;
    players[side].style.setProperty("--heard", player ? player.share(side).toFixed(3) : 0);
    players[side].setAttribute("aria-label", `${words.play[side]}${player && player.enough(side) ? `, ${words.heard}` : ""}`);
  }
  const open = running() && heardBoth() && !sending;
  for (const [name, button] of Object.entries(answers)) {
    button.disabled = !open;
    button.setAttribute("aria-pressed", String(choice === name));
  }
  find("switch").disabled = !(player && player.now) || sending;
  find("next").disabled = !open || !choice;
  if (!sending) find("hint").textContent = !player || !player.ready ? words.loading : heardBoth() ? (choice ? "" : words.answer) : words.listen;
}

function tick() {
  if (player) player.mark();
  draw();
  if (player && player.now) requestAnimationFrame(tick);
}

async function bytes(url) {
  for (let pause = 400, tries = 0; tries < 6; pause *= 2, tries += 1) {
    try {
      const answer = await fetch(url, { cache: "no-store" });
      if (answer.ok) return await answer.arrayBuffer();
      if (answer.status === 404) return null;
    } catch {
      // offline for a moment
    }
    find("hint").textContent = words.retrying;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return null;
}

async function fetchTrial() {
  for (let pause = 500; ; pause = Math.min(pause * 2, 15000)) {
    try {
      const answer = await fetch(urls.next, { cache: "no-store" });
      if (answer.ok) return await answer.json();
      if (answer.status === 403) {
        location.reload();
        return new Promise(() => undefined);
      }
    } catch {
      // offline for a moment
    }
    find("hint").textContent = words.retrying;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function load() {
  choice = null;
  sending = false;
  player.clear();
  trial = await fetchTrial();
  if (trial.finished) {
    location.assign(urls.thanks);
    return;
  }
  const sentence = find("sentence");
  sentence.textContent = trial.sentence;
  sentence.lang = trial.lang;
  sentence.dir = trial.dir;
  find("bar").style.width = `${(100 * trial.done) / Math.max(1, trial.total)}%`;
  find("count").textContent = words.count.replace("{n}", trial.done + 1).replace("{all}", trial.total);
  draw();
  const sounds = await Promise.all([bytes(trial.left), bytes(trial.right)]);
  if (!sounds[0] || !sounds[1]) {
    find("hint").textContent = words.missing;
    setTimeout(load, 4000);
    return;
  }
  await Promise.all([player.load("left", sounds[0]), player.load("right", sounds[1])]);
  shownAt = performance.now();
  draw();
}

function play(side) {
  if (!player || !player.ready || sending) return;
  if (player.now && player.now.side === side) player.stop();
  else player.play(side);
  requestAnimationFrame(tick);
}

function answer(name) {
  if (answers[name].disabled) return;
  choice = name;
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

async function confirm() {
  if (find("next").disabled || sending) return;
  sending = true;
  player.stop();
  const log = { ...player.log(), seconds: Number(((performance.now() - shownAt) / 1000).toFixed(1)), sound_breaks: breaks };
  const vote = { id: uuid(), trial: trial.trial, choice, log };
  draw();
  await keep(vote);
  const outcome = await send(vote, urls.vote, urls.csrf, (n) => { find("outbox").textContent = n ? words.waiting : ""; });
  if (outcome === "refused") find("hint").textContent = words.refused;
  await load();
}

function watchSound() {
  const silent = !running();
  if (silent && veil.hidden) breaks += 1;
  if (silent && player) player.stop();
  veil.hidden = !silent;
  if (silent) begin.focus();
  draw();
}

async function start() {
  begin.disabled = true;
  if (!context) {
    context = new AudioContext({ sampleRate: 24000 });
    context.onstatechange = watchSound;
    player = new Player(context, draw);
  }
  await context.resume().catch(() => undefined);
  begin.disabled = false;
  watchSound();
  if (!running() || trial) return;
  for (const vote of await waiting()) await send(vote, urls.vote, urls.csrf, (n) => { find("outbox").textContent = n ? words.waiting : ""; });
  await load();
}

const keys = {
  1: () => play("left"), 2: () => play("right"), s: () => player && player.switch(), S: () => player && player.switch(),
  ArrowLeft: () => answer("left"), ArrowDown: () => answer("same"), ArrowRight: () => answer("right"), Enter: confirm,
  "?": () => document.querySelector("#keys").showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !veil.hidden || document.querySelector("#keys").open) return;
  if (event.target.matches("input, textarea, select")) return;
  if (event.key === "Enter" && event.target.matches("button") && event.target !== find("next")) return;
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
for (const side of ["left", "right"]) players[side].addEventListener("click", () => play(side));
for (const name of Object.keys(answers)) answers[name].addEventListener("click", () => answer(name));
find("switch").addEventListener("click", () => { player.switch(); requestAnimationFrame(tick); });
find("next").addEventListener("click", confirm);
document.querySelector("#show-keys").addEventListener("click", () => document.querySelector("#keys").showModal());

if (window.AudioContext) {
  begin.addEventListener("click", start);
  begin.disabled = false;
  begin.focus();
} else {
  document.querySelector("#needs").hidden = false;
  begin.hidden = true;
}
