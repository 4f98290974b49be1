// Plays two recordings, one at a time. Every start falls on a sample; a switch is 5 ms raised-cosine out, then 5 ms in, no cross-fade.

const FADE = 0.005;
const LEAD = 0.01; // what is scheduled nearer than this may be late already when the audio thread reads it
const CELL = 0.01;
const TAIL = 0.3;
const NEEDED = 0.9;
const AUDIBLE = 0.0003; // -70 dBFS: far above the dither, far below speech
const AFTER = 0.2;
const LATE = 0.1;

function curve(rising) {
  return Float32Array.from({ length: 64 }, (_, i) => {
    const x = (1 - Math.cos((Math.PI * i) / 63)) / 2;
    return rising ? x : 1 - x;
  });
}
const IN = curve(true);
const OUT = curve(false);

function fadeOut(parameter, start) {
  try {
    parameter.setValueCurveAtTime(OUT, start, FADE);
  } catch {
    // The fade in came so late that it is still under way: silence at once, rather than sound that does not end.
    parameter.cancelScheduledValues(0);
    parameter.setValueAtTime(0, start);
  }
}

// Where sound begins and ends, in seconds; all of it in a silent recording.
function span(buffer) {
  const samples = buffer.getChannelData(0);
  const loud = (x) => Math.abs(x) > AUDIBLE;
  const first = samples.findIndex(loud);
  if (first < 0) return [0, buffer.duration];
  let last = samples.length - 1;
  while (!loud(samples[last])) last -= 1;
  return [first / buffer.sampleRate, (last + 1) / buffer.sampleRate];
}

export class Player {
  constructor(context, changed) {
    this.context = context;
    this.changed = changed;
    this.clear();
  }

  clear() {
    this.stop();
    this.buffers = {};
    this.spans = {};
    this.heard = {};
    this.plays = { left: 0, right: 0 };
    this.frames = { left: 0, right: 0 };
    this.switches = 0;
    this.glitches = 0;
    this.first = null;
    this.paused = null;
  }

  // Takes decoded sound: {left, right}.
  take(buffers) {
    this.clear();
    const sides = Object.entries(buffers);
    for (const [side, buffer] of sides) {
      this.buffers[side] = buffer;
      this.spans[side] = span(buffer);
    }
    // Both are padded with silence on the way here; it ends a moment after the longer one does.
    this.end = Math.min(...sides.map(([, b]) => b.duration), Math.max(...sides.map(([side]) => this.spans[side][1])) + AFTER);
    for (const [side] of sides) this.heard[side] = new Uint8Array(Math.max(1, Math.ceil(this.end / CELL)));
  }

  get ready() {
    return Boolean(this.buffers.left && this.buffers.right);
  }

  // A time on the grid of samples: between two of them a browser would interpolate, and nothing would be exact any more.
  grid(seconds) {
    const rate = this.context.sampleRate;
    return Math.ceil(seconds * rate - 1e-6) / rate;
  }

  // Starts `side` from `offset` seconds; whatever plays is faded out first, so that one source is audible at any time.
  play(side, offset = 0) {
    if (!this.ready || this.context.state === "suspended" || this.context.state === "interrupted") return;
    const begin = this.grid(Math.max(this.context.currentTime, this.stop()) + LEAD);
    const from = Math.min(this.grid(Math.max(0, offset)), this.end);
    const source = this.context.createBufferSource();
    const gain = this.context.createGain();
    source.buffer = this.buffers[side];
    source.connect(gain).connect(this.context.destination);
    gain.gain.setValueAtTime(0, this.context.currentTime);
    gain.gain.setValueCurveAtTime(IN, begin, FADE);
    source.start(begin, from, Math.max(0, this.end - from));
    source.onended = () => this.now && this.now.source === source && this.stop(true);
    this.now = { side, source, gain, begin, from, marked: from, clock: performance.now(), context: this.context.currentTime };
    this.plays[side] += 1;
    this.first = this.first || side;
    this.paused = null;
    this.changed();
  }

  // The corresponding place in the other recording: as far into its speech, in proportion.
  switch() {
    if (!this.now) return;
    const { side } = this.now;
    const other = side === "left" ? "right" : "left";
    const [a, b] = [this.spans[side], this.spans[other]];
    const share = (this.position() - a[0]) / Math.max(a[1] - a[0], CELL);
    this.switches += 1;
    this.play(other, Math.min(Math.max(b[0] + share * (b[1] - b[0]), 0), this.end));
  }

  // Stops where it is, or goes on from there.
  pause() {
    if (this.now) {
      const where = { side: this.now.side, at: this.position() };
      this.stop();
      this.paused = where;
    } else if (this.paused) {
      this.play(this.paused.side, this.paused.at);
    }
  }

  position() {
    const passed = Math.max(0, this.context.currentTime - this.now.begin);
    return Math.min(this.now.from + passed, this.end);
  }

  // Ends what plays; returns the context time at which it is silent.
  stop(ended = false) {
    if (!this.now) return 0;
    this.mark(ended);
    const { source, gain, begin } = this.now;
    this.now = null;
    source.onended = null;
    const now = this.context.currentTime;
    // Two curves must not overlap, however close the presses: a fade in that is under way is let finish.
    const start = now < begin ? this.grid(now) : this.grid(Math.max(now, begin + FADE) + 1 / this.context.sampleRate);
    const silent = start + FADE;
    if (!ended) {
      if (now < begin) {
        gain.gain.cancelScheduledValues(0);
        gain.gain.setValueAtTime(0, now);
      } else {
        fadeOut(gain.gain, start);
      }
      source.stop(silent);
    }
    this.changed();
    return silent;
  }

  // Notes what was rendered since the last call: frames, and cells of 10 ms. A clock that ran behind the wall's is a glitch.
  mark(ended = false) {
    if (!this.now) return;
    const { side } = this.now;
    const to = ended ? this.end : this.position();
    const cells = this.heard[side];
    for (let i = Math.floor(this.now.marked / CELL); i < Math.min(cells.length, Math.floor(to / CELL + 1e-6)); i += 1) cells[i] = 1;
    if (ended) cells[cells.length - 1] = 1;
    this.frames[side] += Math.max(0, Math.round((to - this.now.marked) * this.context.sampleRate));
    this.now.marked = Math.max(this.now.marked, Math.floor(to / CELL) * CELL);
    const [clock, context] = [performance.now(), this.context.currentTime];
    if ((clock - this.now.clock) / 1000 - (context - this.now.context) > LATE) {
      this.glitches += 1;
      [this.now.clock, this.now.context] = [clock, context];
    }
  }

  // The sound was interrupted: what was heard of the side that played does not count.
  forget() {
    if (this.now) this.heard[this.now.side].fill(0);
  }

  share(side) {
    const cells = this.heard[side];
    return cells ? cells.reduce((sum, cell) => sum + cell, 0) / cells.length : 0;
  }

  // The last 300 ms, of its speech and of the recording.
  tail(side) {
    const cells = this.heard[side];
    if (!cells) return false;
    const end = Math.min(cells.length, Math.ceil(this.spans[side][1] / CELL));
    const all = (part) => part.every((cell) => cell === 1);
    return all(cells.slice(Math.max(0, end - Math.round(TAIL / CELL)), end)) && all(cells.slice(-Math.round(TAIL / CELL)));
  }

  // Heard enough to judge: nine tenths of it and its very end.
  enough(side) {
    return this.share(side) >= NEEDED && this.tail(side);
  }

  log() {
    const both = (value) => ({ left: value("left"), right: value("right") });
    return {
      frames: { ...this.frames },
      share: both((side) => Number(this.share(side).toFixed(3))),
      tail: both((side) => this.tail(side)),
      plays: { ...this.plays },
      switches: this.switches,
      first: this.first,
      glitches: this.glitches,
      output_latency_s: this.context.outputLatency || 0,
    };
  }
}
