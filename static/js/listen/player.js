// Plays two recordings of equal length, one at a time. Switching is sample-exact: 5 ms raised-cosine out, then 5 ms in, no cross-fade.

const FADE = 0.005;
const CELL = 0.01;
const TAIL = 0.3;
const NEEDED = 0.9;

function curve(rising) {
  return Float32Array.from({ length: 64 }, (_, i) => {
    const x = (1 - Math.cos((Math.PI * i) / 63)) / 2;
    return rising ? x : 1 - x;
  });
}
const IN = curve(true);
const OUT = curve(false);

export class Player {
  constructor(context, changed) {
    this.context = context;
    this.changed = changed;
    this.clear();
  }

  clear() {
    this.stop();
    this.buffers = {};
    this.heard = {};
    this.plays = { left: 0, right: 0 };
    this.switches = 0;
    this.first = null;
    this.at = 0;
  }

  async load(side, bytes) {
    const buffer = await this.context.decodeAudioData(bytes);
    this.buffers[side] = buffer;
    this.heard[side] = new Uint8Array(Math.max(1, Math.ceil(buffer.duration / CELL)));
  }

  get ready() {
    return Boolean(this.buffers.left && this.buffers.right);
  }

  // Starts `side` from `offset` seconds; whatever plays is faded out first, so that one source is audible at any time.
  play(side, offset = 0) {
    if (!this.ready || this.context.state !== "running") return;
    const from = this.stop();
    const start = Math.max(this.context.currentTime, from) + 0.001;
    const source = this.context.createBufferSource();
    const gain = this.context.createGain();
    source.buffer = this.buffers[side];
    source.connect(gain).connect(this.context.destination);
    gain.gain.setValueAtTime(0, this.context.currentTime);
    gain.gain.setValueCurveAtTime(IN, start, FADE);
    source.start(start, offset);
    source.onended = () => this.now && this.now.source === source && this.stop(true);
    this.now = { side, source, gain, start, offset, marked: offset };
    this.plays[side] += 1;
    this.first = this.first || side;
    this.changed();
  }

  // The same place in the other recording: both have one length, so places correspond as far as they can without words.
  switch() {
    if (!this.now) return;
    const { side } = this.now;
    const place = this.position();
    this.switches += 1;
    this.play(side === "left" ? "right" : "left", place);
  }

  position() {
    if (!this.now) return this.at;
    const passed = Math.max(0, this.context.currentTime - this.now.start);
    return Math.min(this.now.offset + passed, this.now.source.buffer.duration);
  }

  // Ends what plays; returns the context time at which it is silent.
  stop(ended = false) {
    if (!this.now) return 0;
    this.mark(ended);
    const { source, gain } = this.now;
    this.at = ended ? 0 : this.position();
    this.now = null;
    source.onended = null;
    const silent = this.context.currentTime + FADE;
    if (!ended) {
      gain.gain.cancelScheduledValues(this.context.currentTime);
      gain.gain.setValueCurveAtTime(OUT, this.context.currentTime, FADE);
      source.stop(silent);
    }
    this.changed();
    return silent;
  }

  // Notes what was really rendered since the last call, in cells of 10 ms.
  mark(ended = false) {
    if (!this.now) return;
    const { side } = this.now;
    const to = ended ? this.buffers[side].duration : this.position();
    const cells = this.heard[side];
    for (let i = Math.floor(this.now.marked / CELL); i < Math.min(cells.length, Math.ceil(to / CELL)); i += 1) cells[i] = 1;
    this.now.marked = Math.max(this.now.marked, to);
  }

  share(side) {
    const cells = this.heard[side];
    return cells ? cells.reduce((sum, cell) => sum + cell, 0) / cells.length : 0;
  }

  // Heard enough to judge: nine tenths of it and its very end.
  enough(side) {
    const cells = this.heard[side];
    if (!cells) return false;
    const tail = cells.slice(-Math.round(TAIL / CELL));
    return this.share(side) >= NEEDED && tail.every((cell) => cell === 1);
  }

  log() {
    const seconds = (side) => Number((this.share(side) * (this.buffers[side]?.duration || 0)).toFixed(2));
    return {
      heard_s: { left: seconds("left"), right: seconds("right") },
      plays: this.plays,
      switches: this.switches,
      first: this.first,
      output_latency_s: this.context.outputLatency || 0,
    };
  }
}
