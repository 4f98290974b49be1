"""Pairs with a known answer, made from good recordings: what shows whether a panel listens, and whether it would hear a damage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from listening import damage
from listening.models import Pair
from listening.pairs import Prepared, damage_name, prepared
from synth import clips
from synth.models import Clip

Kind = Pair.Kind
#: What the recordings are made into, the first ones first: a small set has one of each that matters.
ORDER = (
    Kind.OBVIOUS, Kind.ASSAY, Kind.PRACTICE, Kind.IDENTICAL, Kind.ASSAY, Kind.OBVIOUS, Kind.INSTRUCTION, Kind.PRACTICE, Kind.ASSAY,
    Kind.OBVIOUS, Kind.ASSAY, Kind.IDENTICAL, Kind.OBVIOUS, Kind.PRACTICE, Kind.ASSAY, Kind.OBVIOUS, Kind.INSTRUCTION, Kind.ASSAY,
    Kind.IDENTICAL, Kind.OBVIOUS, Kind.ASSAY, Kind.ASSAY,
)  # fmt: skip


def make(good: Sequence[tuple[int, Clip]], instructions: Mapping[str, Clip], assay_q_db: float) -> list[Prepared]:
    """Control pairs from (sentence, recording), one from each. Reads and writes sound: do it outside of a transaction.

    Args: instructions, answer (left, same, right) -> a recording that asks for it; none, and there are no such trials.
    assay_q_db, the moderate damage as signal to modulated noise, dB.
    """
    kinds = [Kind.OBVIOUS if kind == Kind.INSTRUCTION and not instructions else kind for kind in ORDER[: len(good)]]
    # An instruction is long; on a short sentence its length would give it away.
    longest = sorted(range(len(good)), key=lambda k: good[k][1].seconds)[len(good) - kinds.count(Kind.INSTRUCTION) :]
    others = iter([pair for k, pair in enumerate(good) if k not in longest])
    carriers = iter([good[k] for k in longest])
    found, times = [], dict.fromkeys(Kind.values, 0)
    for wanted in kinds:
        sentence, clip = next(carriers if wanted == Kind.INSTRUCTION else others)
        found.append(_one(sentence, clip, wanted, times[wanted], instructions, assay_q_db))
        times[wanted] += 1
    return found


def _one(sentence: int, clip: Clip, kind: str, time: int, instructions: Mapping[str, Clip], assay_q_db: float) -> Prepared:
    sound = clips.samples(clip)
    samples, rate, seed = sound.samples, sound.sample_rate, int(clip.pcm_sha256[:8], 16)
    if kind == Kind.IDENTICAL or (kind == Kind.PRACTICE and time == 1):
        return prepared(sentence, clip, clip, kind=kind)
    if kind == Kind.INSTRUCTION:
        answer = sorted(instructions)[(seed + time) % len(instructions)]
        spoken = clips.samples(instructions[answer])
        asked = clips.keep(damage.interrupted(samples, spoken.samples, rate), rate)
        return prepared(sentence, asked, asked, kind=kind, expected=answer)
    if kind == Kind.ASSAY:
        return prepared(sentence, clip, clips.keep(damage.mnru(samples, assay_q_db, seed), rate), kind=kind, damage=damage_name(assay_q_db))
    what = damage.OBVIOUS[time % len(damage.OBVIOUS)]
    return prepared(sentence, clip, clips.keep(damage.obvious(samples, rate, what, seed), rate), kind=kind, damage=what)
