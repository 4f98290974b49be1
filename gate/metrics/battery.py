"""All metrics of one clip in one go: what a scoring task runs and stores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.metrics import asr, cer, dnsmos, level, pauses

FLOOR_DNSMOS = 1.0
WORST_CER = 1.0


@dataclass(frozen=True)
class Scores:
    """`failed` names why the clip is a catastrophe, or ''. A failed clip has CER 1.0 and DNSMOS 1.0: it is a result, not a gap."""

    failed: str
    cer: float
    dnsmos: float
    level_dbfs: float | None
    duration_s: float
    transcript: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def identity(models: Path) -> str:
    """What the scores depend on: normaliser, recogniser and its settings, DNSMOS model, resampler. Reads files, loads no model."""
    return f"{cer.IDENTITY};{asr.identity(models)};{dnsmos.identity()}"


def failed(reason: str, duration_s: float = 0.0) -> Scores:
    return Scores(reason, WORST_CER, FLOOR_DNSMOS, None, duration_s)


def score(samples: npt.NDArray[np.float32], sample_rate: int, references: list[str], language: str, recogniser: asr.Recogniser) -> Scores:
    """Args: mono samples; `references`, the text and its spoken alternatives - the best match counts."""
    duration = len(samples) / sample_rate
    if duration < 0.1:
        return failed("too_short", duration)
    found = pauses.analyse(samples, sample_rate)
    if found.no_audible_speech:
        return failed("no_audible_speech", duration)
    transcript = recogniser.transcribe(samples, sample_rate, language).text
    errors = min((cer.character_errors(ref, transcript, language) for ref in references), key=lambda e: e.capped)
    quality = dnsmos.score(samples, sample_rate)
    active = level.active_level(samples, sample_rate)
    return Scores(
        failed="", cer=errors.capped, dnsmos=quality.levelled.ovrl, level_dbfs=None if math.isnan(active) else active,
        duration_s=duration, transcript=transcript,
        details={
            "cer": vars(errors), "asr_empty": not transcript, "dnsmos_raw_standard": vars(quality.raw_standard),
            "dnsmos_levelled": vars(quality.levelled), "dnsmos_gain_db": quality.gain_db, "dnsmos_tiled": quality.tiled,
            "pauses": {k: v for k, v in vars(found).items() if k != "reason"},
        },
    )  # fmt: skip
