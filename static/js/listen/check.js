// The sound check: plays one word at the level of the test; and, for whoever wants it, tones that only headphones tell apart.
const button = document.querySelector("#hear");
const done = document.querySelector("#done");
let context = null;

async function sounding() {
  context = context || new AudioContext({ sampleRate: 24000 });
  await context.resume();
  return context;
}

async function hear() {
  button.disabled = true;
  try {
    await sounding();
    const answer = await fetch(button.dataset.sound, { cache: "no-store" });
    const source = context.createBufferSource();
    source.buffer = await context.decodeAudioData(await answer.arrayBuffer());
    source.connect(context.destination);
    source.onended = () => { button.disabled = false; };
    source.start();
    done.disabled = false;
  } catch {
    document.querySelector("#silent").hidden = false;
    button.disabled = false;
  }
}

// Three 200 Hz tones: one is 6 dB softer, another has one side turned round. Loudspeakers cancel that one, so it seems the softest there;
// through headphones it is as loud as the first (Woods et al. 2017).
const LENGTH = 0.7;
const GAP = 0.4;
const ROUNDS = 6;
const GOOD = 5;
const tones = { play: document.querySelector("#tones-play"), answers: document.querySelector("#tones-answers"), left: document.querySelector("#tones-left") };
const field = document.querySelector('input[name="tones"]');
let round = 0;
let right = 0;
let tries = 0;
let softest = 0;

function tone(at, kind) {
  const rate = context.sampleRate;
  const buffer = context.createBuffer(2, Math.round(LENGTH * rate), rate);
  for (const side of [0, 1]) {
    const samples = buffer.getChannelData(side);
    const sign = kind === "turned" && side ? -1 : 1;
    const level = kind === "soft" ? 0.1 : 0.2;
    for (let i = 0; i < samples.length; i += 1) {
      const ramp = Math.min(1, i / (0.1 * rate), (samples.length - i) / (0.1 * rate));
      samples[i] = sign * level * ramp * Math.sin((2 * Math.PI * 200 * i) / rate);
    }
  }
  const source = context.createBufferSource();
  source.buffer = buffer;
  source.connect(context.destination);
  source.start(at);
}

async function playTones() {
  await sounding();
  const kinds = ["plain", "soft", "turned"].map((kind) => [Math.random(), kind]).sort((a, b) => a[0] - b[0]).map(([, kind]) => kind);
  softest = kinds.indexOf("soft") + 1;
  kinds.forEach((kind, k) => tone(context.currentTime + 0.1 + k * (LENGTH + GAP), kind));
  tones.play.disabled = true;
  setTimeout(() => { tones.answers.hidden = false; tones.answers.querySelector("button").focus(); }, 1000 * 3 * (LENGTH + GAP));
}

function answerTones(event) {
  const chosen = Number(event.target.value);
  if (!chosen) return;
  round += 1;
  right += chosen === softest;
  tones.answers.hidden = true;
  const over = round === ROUNDS;
  tones.left.textContent = over ? tones.left.dataset[right >= GOOD ? "good" : "poor"] : tones.left.dataset.left.replace("{n}", ROUNDS - round);
  if (over) {
    field.value = right;
    tries += 1;
    tones.play.disabled = right >= GOOD || tries === 2;
    round = right = 0;
  } else {
    tones.play.disabled = false;
    tones.play.focus();
  }
}

if (window.AudioContext) {
  tones.play.disabled = false;
  tones.play.addEventListener("click", playTones);
  tones.answers.addEventListener("click", answerTones);
}
if (button && window.AudioContext) {
  button.addEventListener("click", hear);
  button.disabled = false;  // not before: a press that nobody hears would be lost
} else {
  if (button) document.querySelector("#silent").hidden = false;
  done.disabled = false;
}
