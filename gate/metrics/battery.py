"""All metrics of one clip in one go: what a scoring task runs and stores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.metrics import asr, cer, defects, dnsmos, level, transcript
from synth import pauses

VERSION = "battery-2"
FLOOR_DNSMOS = 1.0
WORST_CER = 1.0
#: From here up a clip counts as an outlier beside the mean error rate.
OUTLIER_CER = 0.5
#: No system speaks at more; such a file was resampled on its way.
USUAL_RATE = 48000

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Scores:
    """What is stored of a clip.

    failed: why nothing could be measured, or ''; then CER is 1.0 and DNSMOS 1.0: a failed clip is a result, not a gap.
    catastrophes: what went wrong outright though it could be measured (runaway, repetition_loop, truncated_tail).
    flags: what a reader should know; they decide nothing. edges_s: silence before and after the speech.
    """

    failed: str
    cer: float
    dnsmos: float
    level_dbfs: float | None
    duration_s: float
    speech_s: float | None = None
    pauses_s: float | None = None
    edges_s: float | None = None
    catastrophes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    transcript: str = ""
    second_transcript: str | None = None
    second_cer: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def wrong(self) -> str:
        """Why the clip is a catastrophe, or ''."""
        return self.failed or ", ".join(self.catastrophes)


@dataclass(frozen=True)
class Making:
    """What the engine said of the making of a clip. seams: first sample of every chunk but the first."""

    hit_cap: bool = False
    seams: tuple[int, ...] = ()


def identity(recogniser: str, second: str = "") -> str:
    """What the scores depend on. Args: identities of the recognisers, the second one '' when the plan has none."""
    parts = [VERSION, cer.IDENTITY, pauses.IDENTITY, level.IDENTITY, transcript.IDENTITY, defects.IDENTITY, recogniser, dnsmos.identity()]
    return ";".join(parts + ([f"second:{second}"] if second else []))


def failed(reason: str, duration_s: float = 0.0) -> Scores:
    return Scores(reason, WORST_CER, FLOOR_DNSMOS, None, duration_s)


def _heard(text: str, references: Sequence[str], language: str, speech_s: float) -> tuple[cer.CharacterErrors, transcript.Reading]:
    """Errors against the reference that fits best, and what is wrong with the transcript."""
    errors, reference = min(((cer.character_errors(r, text, language), r) for r in references), key=lambda pair: pair[0].capped)
    return errors, transcript.read(reference, text, language, speech_s, errors.lenient, errors.cer)


def score(
    samples: Samples, sample_rate: int, references: Sequence[str], language: str, recogniser: asr.Recogniser,
    second: asr.Recogniser | None = None, making: Making = Making(),
) -> Scores:  # fmt: skip
    """Everything about one clip.

    Args: mono samples in [-1, 1]; `references`, the text or its spoken alternatives - the best match counts.
    A transcript in the wrong script is the recogniser's failure: the second recogniser's counts then, else the error rate is 1.0.
    Raises cer.InvalidReference; whatever a recogniser raises comes through, for a scorer that is down is not a bad clip.
    """
    duration = len(samples) / sample_rate
    if reason := defects.failure(samples, sample_rate):
        return failed(reason, duration)
    found = pauses.analyse(samples, sample_rate)
    ms = {"speech": found.speech_ms or 0, "pauses": found.internal_pause_total_ms or 0, "span": found.span_ms or 0}
    text = recogniser.transcribe(samples, sample_rate, language).text
    errors, reading = _heard(text, references, language, ms["span"] / 1000)
    flags, gated = list(reading.flags), errors.capped
    other_text = other_cer = None
    if second is not None:
        other_text = second.transcribe(samples, sample_rate, language).text
        other, other_reading = _heard(other_text, references, language, ms["span"] / 1000)
        other_cer = other.capped
        if "wrong_script" in flags and "wrong_script" not in other_reading.flags:
            errors, reading, gated = other, other_reading, other.capped
            flags.append("second_recogniser_counts")
    if "wrong_script" in reading.flags:
        gated = WORST_CER
    unheard = bool({"wrong_script", "asr_empty"} & set(reading.flags))  # then the transcript says nothing of the voice
    cut = defects.cut_off(samples, sample_rate, found)
    clicks = defects.seam_clicks(samples, sample_rate, making.seams)
    catastrophes = [
        name
        for name, so in (
            ("runaway", making.hit_cap or defects.too_long(duration, errors.reference_length)),
            ("repetition_loop", reading.looped and not unheard),
            ("truncated_tail", not unheard and transcript.lacks_its_end(reading, errors.reference_length - errors.reference_spaces, cut)),
        )
        if so
    ]
    try:
        quality = dnsmos.score(samples, sample_rate)
    except dnsmos.Unscorable:
        return failed("no_audible_speech", duration)
    shown: list[tuple[str, Callable[[], bool]]] = [
        ("clipped", lambda: defects.clipped(samples)), ("dc_offset", lambda: defects.offset(samples)),
        ("narrow_band", lambda: sample_rate < dnsmos.RATE), ("unusual_rate", lambda: sample_rate > USUAL_RATE),
        ("ends_abruptly", lambda: cut), ("seam_clicks", lambda: clicks > 0),
        ("dnsmos_sampled", lambda: quality.sampled),
    ]  # fmt: skip
    active = level.active_level(samples, sample_rate)
    return Scores(
        failed="", cer=gated, dnsmos=quality.levelled.ovrl, level_dbfs=None if math.isnan(active) else active, duration_s=duration,
        speech_s=ms["speech"] / 1000, pauses_s=ms["pauses"] / 1000, edges_s=duration - ms["span"] / 1000,
        catastrophes=tuple(catastrophes), flags=(*flags, *(name for name, so in shown if so())), transcript=text,
        second_transcript=other_text, second_cer=other_cer,
        details={
            "cer": vars(errors), "missing_end": reading.missing_end, "seam_clicks": clicks,
            "dnsmos_raw_standard": vars(quality.raw_standard),
            "dnsmos_levelled": vars(quality.levelled), "dnsmos_gain_db": quality.gain_db, "dnsmos_tiled": quality.tiled,
            "pauses": {k: v for k, v in vars(found).items() if k != "reason"},
        },
    )  # fmt: skip
