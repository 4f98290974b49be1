// The sound check: plays one word at the level of the test.
const button = document.querySelector("#hear");
const done = document.querySelector("#done");
let context = null;

async function hear() {
  button.disabled = true;
  try {
    context = context || new AudioContext({ sampleRate: 24000 });
    await context.resume();
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

if (button && window.AudioContext) {
  button.addEventListener("click", hear);
  button.disabled = false;  // not before: a press that nobody hears would be lost
} else {
  if (button) document.querySelector("#silent").hidden = false;
  done.disabled = false;
}
