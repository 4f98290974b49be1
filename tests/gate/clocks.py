"""Simulated clocks and microphones: what a machine would tell of a candidate whose truth is known. All that follows is the product's own.

A `Clock` gives the passes of timed blocks, `Sound` the scores of clips; `judged` brings both to a verdict through desk and flow.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gate import advance, identity, pace, policy
from gate.decide import Speed
from gate.models import Lever, Measurement
from gate.timing import Blocks
from synth import configuration as schema
from synth import contention
from synth.engine.protocol import YARDSTICK
from synth.models import Clip, Configuration, Leased, Pass, Render, RenderGroup, TimedBlock
from tests import factories
from tests.gate import flow
from tests.gate.test_draws import sentences

ARMS = (0, 1, 1, 0)
#: What no plan of these tests eases: the policy's floor, blocks and margins. Nobody is asked to listen.
PLAN = {
    "benefit": "speed",
    "floor": {"sentences": 100, "clips": 300},
    "listening": {"required": False},
    "timing": {"blocks": 3, "sentences": 20},
}


@dataclass(frozen=True)
class Clock:
    """A candidate `gain` times as fast as its parent that speaks `talks` times as long, on a machine with a fault.

    drift: how much slower (log) the machine gets, within a block or, when it saturates, in all. cold: of the very first pass (log).
    load(block, place): how many times as long a pass takes because of others. felt: whether the yardstick takes longer, too.
    shown(block, place): the program that the process list shows meanwhile. arrivals(arm, wall, audio): chunks of a stream.
    stalls: the share of the candidate's clips that take six times as long; stalling(k): whether the kth always does.
    together: sentences the candidate speaks in one call.
    """

    gain: float = 1.0
    talks: float = 1.0
    drift: float = 0.0
    saturating: bool = True
    cold: float = 0.0
    load: Callable[[int, int], float] = lambda block, place: 1.0
    felt: bool = True
    shown: Callable[[int, int], str] = lambda block, place: ""
    arrivals: Callable[[int, float, float], tuple[list[float], list[float]]] | None = None
    stalls: float = 0.0
    stalling: Callable[[int], bool] = lambda k: False
    together: int = 1
    seed: int = 0
    run_sd: float = 0.01
    sentence_sd: float = 0.04

    def warmth(self, run: int) -> float:
        return self.drift * (1 - math.exp(-run / 2)) if self.saturating else self.drift * run / 4

    def passes(self, block: int, spoken: list[dict]) -> list[dict]:
        """What a worker sends of a block, stamped as a worker stamps it."""
        random = np.random.default_rng([self.seed, block])
        made = [self._pass(random, block, place, spoken) for place in range(4)]
        contention.stamp_slow(made)
        return made

    def _pass(self, random: np.random.Generator, block: int, place: int, spoken: list[dict]) -> dict:
        arm, run, load, name = ARMS[place], 4 * block + place, self.load(block, place), self.shown(block, place)
        slow = self.warmth(run) + (self.cold if run == 0 else 0.0) + random.normal(0, self.run_sd)
        audio = (2.0 + np.arange(len(spoken)) % 5) * (self.talks if arm else 1.0)
        wall = (1 + 0.5 * (np.arange(len(spoken)) % 5)) * load * np.exp(slow + random.normal(0, self.sentence_sd, len(spoken)))
        if arm:
            always = np.array([self.stalling(k) for k in range(len(spoken))])
            wall = wall / self.gain * np.where(always | (random.random(len(spoken)) < self.stalls), 6, 1)
        total, size = float(wall.sum()), self.together if arm else 1
        wall = np.repeat(wall.reshape(-1, size).sum(axis=1), size)  # each is there when all of its call are
        clips = [
            {"sentence": s["sentence"], "wall_s": w, "audio_s": a, "pcm_sha256": "x"}
            | (dict(zip(("arrivals_s", "durations_s"), self.arrivals(arm, w, a), strict=True)) if self.arrivals else {})
            for s, w, a in zip(spoken, wall.tolist(), audio.tolist(), strict=True)
        ]
        kernel = 0.1 * math.exp(self.warmth(run)) * (load if self.felt else 1.0)
        return {
            "place": place, "clips": clips, "figures": {"total_wall_s": total, "sentinel_s": {YARDSTICK: [kernel, kernel]}},
            "contended": {name: {"samples": 9, "max_percent": 95.0}} if name else {},
        }  # fmt: skip


@dataclass(frozen=True)
class Sound:
    """Good speech, but for what is told: `change(arm, place in the draw)` gives other scores, `empty` whether nothing was said at all.

    longer: the candidate's durations over its parent's.
    """

    change: Callable[[str, int], dict] = lambda arm, place: {}
    empty: Callable[[str, int], bool] = lambda arm, place: False
    longer: float = 1.0
    seed: int = 1

    def scores(self, arm: str, place: int, replicate: int) -> dict:
        """The sentence decides most; the rest is its clip's own."""
        sentence = np.random.default_rng([self.seed, place])
        clip = np.random.default_rng([self.seed, place, replicate, arm == "candidate"])
        seconds = (self.longer if arm == "candidate" else 1.0) * 2 * math.exp(sentence.normal(0, 0.3) + clip.normal(0, 0.03))
        good = {
            "cer": abs(clip.normal(0.02, 0.03)), "dnsmos": sentence.normal(3.2, 0.1) + clip.normal(0, 0.1),
            "level_dbfs": clip.normal(-20, 0.3), "duration_s": seconds, "failed": "",
        }  # fmt: skip
        return good | self.change(arm, place)


@dataclass
class Bench:
    """A worker that renders nothing and times nothing: it says what a clock says."""

    desk: flow.InProcessDesk = field(default_factory=flow.InProcessDesk)

    def __post_init__(self):
        self.desk.hello({"name": "mac", "device_class": "test"})

    def judged(self, clock: Clock, sound: Sound | None = None, count: int = 24, **kwargs) -> Lever:
        """A lever at its verdict. Without `sound` every clip of the candidate is bit for bit its parent's: then time alone decides."""
        kind = {"sampling": {"extra": {"memory_mb": 99}}, "expect_bit_exact": True} if sound is None else {"voice": {"speed": 1.01}}
        plan = PLAN | kwargs.pop("plan", {})
        lever = factories.registered(**({"change": kind} | kwargs), texts=sentences(count), plan=plan)
        while unit := self.desk.claim("preflight", ""):
            self.desk.finish(unit, report={"digests": {}})
        advance.advance(lever.pk)
        _render(again(lever), sound)
        advance.advance(lever.pk)
        while unit := self.desk.claim("block", ""):
            self.desk.finish(unit, passes=clock.passes(unit["number"], unit["sentences"]))
            advance.advance(lever.pk)
        if sound is not None:
            _measure(again(lever), sound)
            advance.advance(lever.pk)
        return again(lever)


def again(lever: Lever) -> Lever:
    return Lever.objects.select_related("draw", "parent", "candidate").get(pk=lever.pk)


def _places(lever: Lever) -> dict[int, int]:
    return {s.pk: k for k, s in enumerate(lever.draw.sentences())}


def _render(lever: Lever, sound: Sound | None) -> None:
    """Every render's outcome, with a clip that has a name and no sound."""
    arms, places, clips, renders = identity.arms(lever), _places(lever), {}, []
    for render in Render.objects.filter(draw_key=lever.draw.key):
        arm, place = arms[render.configuration_id], places[render.sentence_id]
        render.outcome = Render.Outcome.EMPTY if sound and sound.empty(arm, place) else Render.Outcome.MADE
        if render.outcome == Render.Outcome.MADE:
            name = f"{lever.pk}:{place}:{render.replicate}:{render.seed}:{arm if sound else 'both'}"
            render.clip = clips.setdefault(name, Clip(pcm_sha256=name, file_sha256=name, sample_rate=24000, samples=48000))
        renders.append(render)
    Clip.objects.bulk_create(clips.values())
    Render.objects.bulk_update(renders, ["outcome", "clip"], batch_size=40)
    RenderGroup.objects.filter(draw_key=lever.draw.key).update(state=Leased.State.DONE)


def _measure(lever: Lever, sound: Sound) -> None:
    arms, places = identity.arms(lever), _places(lever)
    made = {r.clip_id: r for r in Render.objects.filter(draw_key=lever.draw.key).exclude(clip=None)}
    rows = list(Measurement.objects.all())
    for row in rows:
        render = made[row.clip_id]
        row.state = Leased.State.DONE
        row.scores = sound.scores(arms[render.configuration_id], places[render.sentence_id], render.replicate)
    Measurement.objects.bulk_update(rows, ["state", "scores"], batch_size=40)


def speed_of(clock: Clock, blocks: int = 3) -> Speed:
    """What the gate reads from a clock's blocks, as they would be stored."""
    batching = {"batching": {"size": clock.together}} if clock.together > 1 else {}
    first = factories.configuration("parent")
    second = Configuration.of(schema.parse(factories.tone("candidate", detune=1.01) | batching))
    key, spoken = f"clock {clock.seed}", [{"sentence": str(k)} for k in range(20)]
    for number in range(blocks):
        passes = clock.passes(number, spoken)
        block = TimedBlock.objects.create(
            first=first, second=second, draw_key=key, number=number, sentences=spoken, state=Leased.State.DONE,
            contended={str(p["place"]): p["contended"] for p in passes if p["contended"]},
        )  # fmt: skip
        Pass.objects.bulk_create(
            Pass(block=block, place=p["place"], configuration=(first, second)[ARMS[p["place"]]], clips=p["clips"], figures=p["figures"])
            for p in passes
        )
    found, _ = pace.measured_speed(Blocks(None, first, second, key), policy.parse({"timing": {"blocks": blocks}}))
    TimedBlock.objects.filter(draw_key=key).delete()
    return found
