// Buttons that each play one recording.
let context = null;

async function play(button) {
  button.disabled = true;
  try {
    context = context || new AudioContext({ sampleRate: 24000 });
    await context.resume();
    const answer = await fetch(button.dataset.sound, { cache: "no-store" });
    const source = context.createBufferSource();
    source.buffer = await context.decodeAudioData(await answer.arrayBuffer());
    source.connect(context.destination);
    source.start();
  } finally {
    button.disabled = false;
  }
}

for (const button of document.querySelectorAll("[data-sound]")) {
  button.addEventListener("click", () => play(button).catch(() => undefined));
  button.disabled = !window.AudioContext;
}
