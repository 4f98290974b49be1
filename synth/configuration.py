"""The schema of a configuration: everything that makes one text-to-speech system, and its digest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from synth.canonical import digest_of

#: Languages whose text rules this project has; others are refused rather than guessed.
LANGUAGES = {
    "en": "English", "hi": "Hindi", "ja": "Japanese", "es": "Spanish", "fr": "French", "de": "German", "it": "Italian",
    "pt": "Portuguese", "zh": "Chinese", "ko": "Korean", "bn": "Bengali", "mr": "Marathi", "ta": "Tamil", "te": "Telugu",
    "ar": "Arabic", "ur": "Urdu", "ru": "Russian", "nl": "Dutch", "pl": "Polish", "tr": "Turkish",
}  # fmt: skip


class Refused(ValueError):
    """A spec that can't be taken: one sentence with the field, the value and the remedy, and a stable code."""

    def __init__(self, code: str, message: str, field: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.field = code, message, field


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Runtime(Section):
    """The engine's package and process settings. Forks are pinned to a full commit."""

    package: str = "mlx-audio"
    version: str | None = None
    env: dict[str, str] = {}
    wired_limit: Literal["off", "model"] | int = "off"
    cache_limit_mb: int | None = Field(None, ge=0)
    memory_limit_mb: int | None = Field(None, ge=1)

    @field_validator("env")
    @classmethod
    def harmless(cls, value: dict[str, str]) -> dict[str, str]:
        for name, content in value.items():
            if not re.fullmatch(r"(MLX|MKL|OMP|HF|TOKENIZERS)_[A-Z0-9_]+", name) or "\0" in content:
                raise ValueError(f"{name} can't be set: only MLX_, MKL_, OMP_, HF_ and TOKENIZERS_ variables reach the model's process")
        return value

    @field_validator("package")
    @classmethod
    def pinned(cls, value: str) -> str:
        if value.startswith("git+") and not re.search(r"@[0-9a-f]{40}$", value):
            raise ValueError("pin a fork to a commit of 40 digits, as in git+https://.../repo@<commit>")
        return value


class Source(Section):
    """Weights, from a hub (`id`) or from a folder on the worker (`path`; a bare name is one of the bundled models)."""

    id: str | None = None
    path: str | None = None
    revision: str | None = None
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")

    @model_validator(mode="after")
    def one(self) -> Source:
        if (self.id is None) == (self.path is None):
            raise ValueError("give either id or path")
        return self


class Model(Source):
    codec: Source | None = None


class Adapter(Source):
    apply: Literal["wrap", "merge", "merge-dense"] = "wrap"
    scale: float = Field(gt=0)


class Rule(Section):
    """What happens to the modules whose path the regular expression is found in; the first rule that matches wins."""

    match: str
    bits: Literal[2, 3, 4, 5, 6, 8] | None = None
    group_size: Literal[16, 32, 64, 128] = 64
    mode: Literal["affine", "mxfp4", "mxfp8", "nvfp4"] = "affine"
    keep: bool = False
    dense: bool = False

    @field_validator("match")
    @classmethod
    def compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def exactly_one(self) -> Rule:
        if (self.bits is not None) + self.keep + self.dense != 1:
            raise ValueError("say exactly one of bits, keep, dense")
        return self


class Voice(Section):
    """Who speaks. `reference` is the sha256 of a recording that was uploaded to the host, which a cloned voice is made from."""

    preset: str | None = None
    reference: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    reference_text: str | None = None
    instruct: str | None = None
    language: str | None = None
    speed: float = Field(1.0, gt=0.2, lt=5)


class Schedule(Section):
    start: float
    floor: float
    steps: int = Field(ge=1)


class Sampling(Section):
    temperature: float | Schedule | None = None
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0)
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, gt=0)
    repetition_window: int | None = Field(None, ge=1)
    cfg_scale: float | None = None
    max_tokens: int | None = Field(None, ge=1)
    extra: dict[str, Any] = {}


class Streaming(Section):
    interval_s: float = Field(gt=0)
    preroll_s: float = Field(0.0, ge=0)
    resume_s: float = Field(0.0, ge=0)


class Batching(Section):
    size: int = Field(ge=1, le=256)
    sort: Literal["none", "length"] = "none"
    engine: str = "stock"


class CodeLever(BaseModel):
    """A lever that is code: a registered name, an entry point, or module:attribute, with its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)
    lever: str


class Configuration(Section):
    """One complete system. `name`, `parent`, `note` and `expect_bit_exact` are not part of its digest."""

    schema_: Literal[1] = Field(1, alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.+_-]{0,79}$")
    parent: str | None = None
    engine: str = "mlx-audio"
    runtime: Runtime = Runtime()
    model: Model
    adapter: Adapter | None = None
    quantisation: list[Rule] = []
    compile: list[str] = []
    voice: Voice = Voice()
    sampling: Sampling = Sampling()
    streaming: Streaming | None = None
    batching: Batching | None = None
    levers: list[CodeLever] = []
    warmup_clips: int = Field(1, ge=0, le=20)
    expect_bit_exact: bool = False
    note: str = ""

    def canonical(self) -> dict[str, Any]:
        """What the digest is taken over: defaults left out, so that a new default section changes no digest."""
        return self.model_dump(mode="json", exclude={"name", "parent", "note", "expect_bit_exact", "schema_"}, exclude_defaults=True)

    def digest(self) -> str:
        """See canonical.digest_of."""
        return digest_of(self.canonical())


def parse(mapping: Any, where: str = "configuration") -> Configuration:
    """Reads a configuration; raises Refused with one sentence that names the field and the value."""
    if not isinstance(mapping, dict):
        raise Refused("configuration_invalid", f"{where} is not a mapping of names to values.", where)
    try:
        return Configuration.model_validate(mapping)
    except ValidationError as error:
        raise refusal(error, where) from error


def refusal(error: ValidationError, where: str) -> Refused:
    """The first thing pydantic found, as one sentence in this project's words."""
    first = error.errors()[0]
    field = ".".join([where, *(str(part) for part in first["loc"])]) if first["loc"] else where
    if first["type"] == "extra_forbidden":
        return Refused("unknown_key", f"{field} is not a known key: remove it or check its spelling.", field)
    if first["type"] == "missing":
        return Refused("missing_key", f"{field} is missing: add it.", field)
    text = first["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(first.get("input"), dict | list) else f" is {first.get('input')!r}"
    return Refused("configuration_invalid", f"{field}{shown}: {text[0].lower()}{text[1:]}.", field)


def _flat(mapping: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, json.dumps(value, sort_keys=True)


def difference(candidate: Configuration, parent: Configuration) -> dict[str, tuple[str | None, str | None]]:
    """path -> (parent's value, candidate's value) as JSON texts, for every path that differs."""
    new, old = dict(_flat(candidate.canonical())), dict(_flat(parent.canonical()))
    return {key: (old.get(key), new.get(key)) for key in sorted(new.keys() | old.keys()) if old.get(key) != new.get(key)}


def sections(changes: dict[str, Any]) -> list[str]:
    """The top-level sections a difference touches; a lever should touch one."""
    return sorted({path.split(".")[0] for path in changes})
