"""An optional judge: a language model that listens to a clip and fills in a scorecard. Shown beside the evidence, never part of it.

A judge is any object with `name` and `judge(Request) -> mapping or JSON text`; a site names one in EARWITNESS_JUDGE: `http` (below), or
an entry point of the group `earwitness.judges` that makes one. Without a name, or without a key, nothing is called and nothing is wrong.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Protocol

import httpx
import numpy as np
import soundfile
from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

log = logging.getLogger("earwitness.judges")
GROUP = "earwitness.judges"
INSTRUCTION = (
    "Listen to this recording of a text-to-speech system. Write down what you hear before you read the expected text, then compare. "
    "Answer with one JSON object that fits the schema and nothing else."
)
LONGEST_ANSWER = 65536
WAIT_S = 120.0


class JudgeFailed(Exception):
    """The judge gave no usable answer; the message is one sentence."""


class Scorecard(BaseModel):
    """What a judge answers; anything missing, unknown, of another type or out of range is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    transcription: str = Field(max_length=4000, description="The words that were heard, and only those.")
    clarity: str = Field(max_length=1000, description="How clean the sound is: noise, robotic timbre, clipping.")
    completeness: str = Field(max_length=1000, description="Whether all of the text is there, and nothing after it.")
    phonetic_drift: str = Field(max_length=1000, description="Sounds or words that were replaced by others.")
    alignment_score: int = Field(ge=0, le=100, description="How far what was heard is what was expected.")
    overall_score: int = Field(ge=0, le=100, description="Quality as a whole.")


@dataclass(frozen=True)
class Request:
    """One clip to judge: mono float32 samples, their rate, and what should have been said. Nothing tells the arm."""

    samples: np.ndarray
    sample_rate: int
    text: str
    language: str

    def wav(self) -> bytes:
        out = io.BytesIO()
        soundfile.write(out, np.clip(self.samples, -1, 1), self.sample_rate, format="WAV", subtype="PCM_16")
        return out.getvalue()


class Judge(Protocol):
    name: str

    def judge(self, request: Request) -> Mapping[str, Any] | str: ...


class HttpJudge:
    """POSTs {instruction, schema, expected_text, language, audio} to a URL and reads a scorecard back.

    A few lines in front of any provider's own API turn it into this one.
    """

    def __init__(self, url: str, key: str) -> None:
        self.url, self._key, self.name = url, key, f"http:{httpx.URL(url).host}"

    def judge(self, request: Request) -> str:
        body = {
            "instruction": INSTRUCTION, "schema": Scorecard.model_json_schema(), "expected_text": request.text,
            "language": request.language, "audio": {"format": "wav", "base64": base64.b64encode(request.wav()).decode()},
        }  # fmt: skip
        try:
            with httpx.stream("POST", self.url, json=body, headers={"Authorization": f"Bearer {self._key}"}, timeout=WAIT_S) as answer:
                answer.raise_for_status()
                read, deadline = b"", time.monotonic() + WAIT_S
                for part in answer.iter_bytes():
                    read += part
                    if time.monotonic() > deadline:
                        raise JudgeFailed(f"The judge gave no answer in {WAIT_S:g} s.")
                    if len(read) > LONGEST_ANSWER:
                        raise JudgeFailed(f"The judge's answer is longer than {LONGEST_ANSWER} bytes.")
        except httpx.HTTPStatusError as error:
            raise JudgeFailed(f"The judge answered with status {error.response.status_code}.") from error
        except httpx.HTTPError as error:
            raise JudgeFailed(f"The judge can't be reached: {type(error).__name__}.") from error
        return read.decode("utf-8", "replace")


def read(answer: Mapping[str, Any] | str) -> Scorecard:
    """A judge's answer as a scorecard. Raises JudgeFailed with the first thing that does not fit."""
    try:
        return Scorecard.model_validate_json(answer) if isinstance(answer, str) else Scorecard.model_validate(dict(answer))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise JudgeFailed(f"The judge's answer is no scorecard: {where}: {first['msg']}.") from error
    except (TypeError, ValueError, json.JSONDecodeError) as error:
        raise JudgeFailed(f"The judge's answer is no scorecard: {error}.") from error


@cache
def _made(name: str, url: str, key: str) -> Judge | None:
    if not name or not key:
        return None
    if name == "http":
        return HttpJudge(url, key) if url else None
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            made: Judge = entry.load()()
            return made
    return None


def configured() -> Judge | None:
    """The site's judge, or None: then nobody is asked. One that can't be made is told in the log and is none."""
    try:
        return _made(settings.JUDGE, settings.JUDGE_URL, settings.JUDGE_KEY)
    except Exception:  # noqa: BLE001 - somebody else's code
        log.exception("the judge %r can't be made", settings.JUDGE)
        return None


def ask(judge: Judge, request: Request) -> Scorecard:
    """The judge's scorecard. Raises JudgeFailed; whatever the judge does, in two minutes at most."""
    answer: list[Any] = []

    def work() -> None:
        try:
            answer.append(judge.judge(request))
        except Exception as error:  # noqa: BLE001 - told below
            answer.append(error)

    thread = threading.Thread(target=work, daemon=True, name="judge")
    thread.start()
    thread.join(WAIT_S)
    if not answer:
        raise JudgeFailed(f"The judge gave no answer in {WAIT_S:g} s.")
    if isinstance(answer[0], JudgeFailed):
        raise answer[0]
    if isinstance(answer[0], Exception):
        raise JudgeFailed(f"The judge failed: {type(answer[0]).__name__}: {answer[0]}.")
    return read(answer[0])
