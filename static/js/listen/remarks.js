// What was wrong, after the answer and only if somebody wants to say: how sure, and remarks on a word or on all of it.

// The words of a sentence as [text, start, end], in code points; languages without spaces are cut by the browser's own rules.
export function wordsOf(sentence, lang) {
  const points = (text) => Array.from(text).length;
  if (!/\s/u.test(sentence) && globalThis.Intl && Intl.Segmenter) {
    const parts = [...new Intl.Segmenter(lang, { granularity: "word" }).segment(sentence)].filter((part) => part.isWordLike);
    return parts.map((p) => [p.segment, points(sentence.slice(0, p.index)), points(sentence.slice(0, p.index + p.segment.length))]);
  }
  return [...sentence.matchAll(/\S+/gu)].map((m) => [m[0], points(sentence.slice(0, m.index)), points(sentence.slice(0, m.index + m[0].length))]);
}

function button(text, pressed, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  if (pressed !== null) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", act);
  return made;
}

export class Remarks {
  constructor(words, find, dialog) {
    this.words = words;
    this.find = find;
    this.dialog = dialog;
    this.begin(null);
  }

  begin(trial) {
    this.trial = trial;
    this.tags = [];
    this.strength = "";
  }

  // The sentence with its words to tap.
  sentence() {
    const points = Array.from(this.trial.sentence);
    const parts = [];
    let at = 0;
    for (const [text, start, end] of wordsOf(this.trial.sentence, this.trial.lang)) {
      parts.push(points.slice(at, start).join(""));
      const word = button(text, null, () => this.ask([start, end], text));
      word.className = "word";
      word.classList.toggle("marked", this.tags.some((t) => t.word && t.word[0] === start));
      parts.push(word);
      at = end;
    }
    this.find("sentence").replaceChildren(...parts, points.slice(at).join(""));
  }

  // Once there is an answer: strength, unless both are the same, and the words to tap.
  open(choice) {
    if (choice === "same") this.strength = "";
    this.find("more").hidden = false;
    this.find("strength").hidden = choice === "same";
    for (const name of ["slightly", "clearly"]) this.find(name).setAttribute("aria-pressed", String(this.strength === name));
    const marks = this.tags.map((tag) => {
      const on = tag.word ? Array.from(this.trial.sentence).slice(...tag.word).join("") : "";
      const text = `${this.words.side[tag.side]}: ${this.words.tags[tag.tag]}${on ? ` - ${on}` : ""} ×`;
      return button(text, null, () => { this.tags = this.tags.filter((t) => t !== tag); this.open(choice); });
    });
    this.find("marks").replaceChildren(...marks);
    this.choice = choice;
    this.sentence();
  }

  say(strength) {
    this.strength = this.strength === strength ? "" : strength;
    this.open(this.choice);
  }

  ask(word, text) {
    let side = this.choice === "left" ? "right" : "left"; // what is worse is what there is something to say of
    const draw = () => {
      this.dialog.querySelector("h2").textContent = text ? this.words.remark.replace("{word}", text) : this.words.whole;
      const sides = ["left", "right"].map((name) => button(this.words.side[name], side === name, () => { side = name; draw(); }));
      this.dialog.querySelector(".sides").replaceChildren(...sides);
      const has = (tag) => this.tags.find((t) => t.tag === tag && t.side === side && String(t.word) === String(word));
      const chips = Object.entries(this.words.tags).map(([tag, label]) => button(label, Boolean(has(tag)), () => {
        const old = has(tag);
        this.tags = old ? this.tags.filter((t) => t !== old) : [...this.tags, { side, word, tag }].slice(0, 24);
        draw();
      }));
      this.dialog.querySelector(".chips").replaceChildren(...chips);
    };
    draw();
    this.dialog.onclose = () => this.open(this.choice);
    this.dialog.showModal();
  }
}
