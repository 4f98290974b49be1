"""The mlx-audio engine: loads a model, applies the configuration's sections in order, and speaks."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten

from synth.engine import codec, components, effective, forced, kokoro, loading, parameters, sentinels, together, traffic
from synth.engine.levers import COMPILE, COMPILE_LAST, REGISTRY, Context, adapter, clone, quantise, sampling
from synth.engine.protocol import Chunk, EngineRefused, Report, check_digest, resolve, voice_file

#: What a model type calls a language in `lang_code`; anything else gets the plain code.
LANGUAGE_NAMES = {
    "kokoro": {"en": "a", "es": "e", "fr": "f", "hi": "h", "it": "i", "ja": "j", "pt": "p", "zh": "z"},
    "qwen3_tts": {"en": "english", "zh": "chinese", "ja": "japanese", "ko": "korean", "de": "german", "fr": "french",
                  "ru": "russian", "pt": "portuguese", "es": "spanish", "it": "italian"},
}  # fmt: skip
#: What model types call a scale of classifier-free guidance.
GUIDANCE = ("cfg_scale", "cfg_weight", "guidance_scale")
#: Caps that only the body of a generate() knows, for a signature whose default is None.
TOKEN_CAPS = {"zonos2": 1024}
#: What a frame of CSM lasts.
FRAME_MS = 80


def commits(*packages: str) -> dict[str, str]:
    """The commit of each package that was installed from a repository instead of a release."""
    found = {}
    for name in packages:
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
        if commit := origin.get("vcs_info", {}).get("commit_id"):
            found[name] = commit
    return found


def _token_cap(model: Any, kind: str, wanted: dict[str, Any]) -> int | None:
    """Tokens after which generate() gives up: as asked, as the checkpoint's own settings say, or its signature's default."""
    defaults = {name: p.default for name, p in inspect.signature(model.generate).parameters.items()}
    if wanted.get("max_new_tokens") is not None:  # where a model has both, it is the one that counts
        return int(wanted["max_new_tokens"])
    if wanted.get("max_tokens") is not None:
        return int(wanted["max_tokens"])
    if "max_audio_length_ms" in defaults:
        return int(wanted.get("max_audio_length_ms", defaults["max_audio_length_ms"]) / FRAME_MS)
    if "max_tokens" not in defaults:
        return None
    resolve_options = getattr(model, "_resolve_generation_options", None)  # Qwen3-TTS: asked, then generation_config.json, then 2048
    default = resolve_options(None, None, None, None, None)["max_tokens"] if resolve_options else defaults["max_tokens"]
    return default if isinstance(default, int) else TOKEN_CAPS.get(kind)


class MlxEngine:
    """See protocol.Engine. Everything happens on the thread that made it: MLX streams are thread-local."""

    def __init__(self, configuration: dict[str, Any], models: Path, modules: list[str]) -> None:
        if platform.system() == "Linux":
            from synth.engine import cpu

            cpu.install()
        self.report = Report()
        self.context = Context(loading.load(configuration["model"], models, self.report))
        # The folder of mlx-audio its class is from: what a checkpoint calls itself is another name for some, and none for CSM.
        self.kind = type(self.context.model).__module__.removeprefix("mlx_audio.tts.models.").split(".")[0]
        if configuration["model"].get("codec") and self.kind not in codec.SEPARATE:
            raise EngineRefused("This model brings its own codec and takes no other: leave model.codec out.")
        if self.kind == "kokoro":
            kokoro.use_offline_front_end(self.context.model)
        self._runtime(configuration.get("runtime", {}))
        if configuration.get("adapter"):
            self._adapter(configuration["adapter"], models)
        if configuration.get("quantisation"):
            self.report.effects["quantisation"] = quantise.apply(self.context, configuration["quantisation"])
        for item in configuration.get("levers", []):
            self._code(item["lever"], {k: v for k, v in item.items() if k != "lever"}, REGISTRY, modules, "levers")
        self._arguments(configuration, models)
        self._batching(configuration.get("batching"), modules)
        brought = codec.bring(self.context.model)  # after quantisation, which is not for it
        if brought:
            self.report.digests["codec"] = brought
        weights = traffic.of(self.context.model)
        if weights:
            self.report.notes["traffic"] = weights
        self.report.notes["effective"] = effective.read(self.context.model, self.context.generate, self.token_cap)
        self._parameters = self.context.model.parameters()  # as they are before compiling takes modules out of the tree
        for name in sorted(configuration.get("compile", []), key=COMPILE_LAST.__contains__):
            self._code(name, {}, COMPILE, modules, "compile")
        self.context.model.eval()
        mx.eval(self.context.model.parameters())
        self.report.notes |= self.context.notes
        self.report.environment = {
            "mlx": version("mlx"), "mlx-audio": version("mlx-audio"), "commits": commits("mlx", "mlx-audio"),
            "python": platform.python_version(),
            "platform": platform.platform(), "device": str(mx.default_device()), "metal": mx.metal.is_available(),
            "threads": os.environ.get("MKL_NUM_THREADS", ""),
        }  # fmt: skip

    def _runtime(self, runtime: dict[str, Any]) -> None:
        if runtime.get("version") and runtime["version"] != version("mlx-audio"):
            raise EngineRefused(f"The configuration asks for mlx-audio {runtime['version']}; this worker has {version('mlx-audio')}.")
        if runtime.get("package", "mlx-audio") != "mlx-audio":
            raise EngineRefused(f"This worker runs mlx-audio as released; it can't install {runtime['package']} by itself.")
        if runtime.get("cache_limit_mb") is not None:
            mx.set_cache_limit(runtime["cache_limit_mb"] << 20)
        if runtime.get("memory_limit_mb") is not None:
            mx.set_memory_limit(runtime["memory_limit_mb"] << 20)
        wired = runtime.get("wired_limit", "off")
        if wired != "off" and mx.metal.is_available():
            mx.set_wired_limit(mx.device_info()["max_recommended_working_set_size"] if wired == "model" else int(wired) << 20)

    def _adapter(self, wanted: dict[str, Any], models: Path) -> None:
        file = adapter.locate(wanted, models)
        self.report.effects["adapter"] = adapter.apply(self.context, file, wanted["scale"], wanted.get("apply", "wrap"))
        found = self.report.digests["adapter"] = adapter.digest_of(file)
        check_digest(f"The adapter at {file.name}", found, wanted.get("sha256"))

    def _code(self, name: str, parameters: dict[str, Any], bundled: dict[str, str], modules: list[str], section: str) -> None:
        """A lever that is code, registered or from the worker's own list; it must change something, and is known by its source."""
        function = resolve(name, "earwitness.levers", bundled, modules)
        try:
            changed = function(self.context, **parameters)
        except TypeError as error:
            raise EngineRefused(f"The lever {name!r} doesn't take these parameters: {error}.") from error
        if not changed:
            raise EngineRefused(f"The lever {name!r} changed nothing in this model (no_effect): it is not made for it.")
        self.report.effects[f"{section}.{name}"] = changed
        source = inspect.getsourcefile(function)
        if source:
            self.report.digests[f"lever:{name}"] = hashlib.sha256(Path(source).read_bytes()).hexdigest()

    def _arguments(self, configuration: dict[str, Any], models: Path) -> None:
        """Puts voice and sampling into generate(); a name its signature doesn't have would be swallowed, so it is refused."""
        given = dict(configuration.get("sampling", {}))
        wanted = {**given.pop("extra", {}), **given}
        unread = parameters.unread(self.context.model.generate)
        self.accepted = parameters.accepted(self.context.model.generate) - unread - {"text"}
        if isinstance(wanted.get("temperature"), dict):
            falls = wanted.pop("temperature")
            wanted["temperature"] = falls["start"]
            self.report.effects["sampling.temperature"] = sampling.schedule(self.context, **falls)
        if "cfg_scale" in wanted:
            theirs = next((name for name in GUIDANCE if name in self.accepted), None)
            if theirs is None:
                raise EngineRefused("This model has no classifier-free guidance: leave sampling.cfg_scale out.")
            wanted[theirs] = wanted.pop("cfg_scale")
        voice = configuration.get("voice", {})
        for ours, theirs in (("preset", "voice"), ("speed", "speed"), ("instruct", "instruct"), ("reference_text", "ref_text")):
            if voice.get(ours) is not None:
                wanted[theirs] = voice[ours]
        for name in wanted:
            if name in unread:
                raise EngineRefused(f"This model's generate() has {name!r} and never reads it: leave it out, it would change nothing.")
            if name not in self.accepted:
                raise EngineRefused(f"This model's generate() takes no {name!r}; it takes {', '.join(sorted(self.accepted))}.")
        if configuration.get("streaming"):
            if not {"stream", "streaming_interval"} <= self.accepted:
                raise EngineRefused("This model does not stream: leave the section streaming out.")
            wanted |= {"stream": True, "streaming_interval": configuration["streaming"]["interval_s"]}
        if voice.get("reference"):
            file = voice_file(models, voice["reference"])
            self.report.effects["voice.reference"] = clone.apply(
                self.context, self.accepted, self.kind, file, voice["reference"], voice.get("reference_text")
            )
        self.context.generate |= wanted
        self.token_cap = _token_cap(self.context.model, self.kind, wanted)
        self.language = voice.get("language")
        self.report.effects["generate"] = sorted(wanted)

    def _batching(self, wanted: dict[str, Any] | None, modules: list[str]) -> None:
        self.together = None
        if not wanted:
            return
        if self.context.generate.get("stream"):
            raise EngineRefused("Streaming and batching exclude one another: leave one of the sections out.")
        if hasattr(self.context.model.generate, "__wrapped__"):
            raise EngineRefused("A lever here changes how one text is spoken, and batches pass it by (no_effect): leave one of them out.")
        self.rows = together.Rows(self.context.model)
        self.together = together.speaker(self.context, wanted.get("engine", "stock"), modules)
        self.together_accepts = parameters.accepted(self.together) - parameters.unread(self.together) - {"texts"}
        together.arguments(self.together_accepts, self.context.generate, wanted["size"])  # refused now, not at the first clip
        self.report.effects["batching"] = wanted["size"]

    def generate(self, text: str, language: str, seed: int) -> Iterator[Chunk]:
        if self.together:
            return self.generate_batch([text], language, seed)
        return self._spoken(self.context.model.generate, {"text": text} | self._call(language), seed)

    def generate_batch(self, texts: list[str], language: str, seed: int) -> Iterator[Chunk]:
        assert self.together is not None, "only a configuration with the section batching is asked for several at once"
        arguments = together.arguments(self.together_accepts, self._call(language), len(texts))
        self.rows.taken()  # what was counted before this call
        return self._spoken(self.together, {"texts": texts} | arguments, seed)

    def _call(self, language: str) -> dict[str, Any]:
        """What generate() is called with besides the text."""
        arguments = dict(self.context.generate)
        if "lang_code" in self.accepted:
            spoken = self.language or language
            arguments["lang_code"] = LANGUAGE_NAMES.get(self.kind, {}).get(spoken, spoken)
            if self.kind == "kokoro":
                kokoro.check_language(self.context.model, arguments["lang_code"], spoken)
        return arguments

    def _spoken(self, function: Callable[..., Any], arguments: dict[str, Any], seed: int) -> Iterator[Chunk]:
        codec.forget(self.context.model)
        mx.clear_cache()
        mx.reset_peak_memory()
        mx.random.seed(seed)
        for result in function(**arguments):
            mx.eval(result.audio)  # a clock read on a lazy array times graph building
            samples = np.array(result.audio.astype(mx.float32)).reshape(-1)
            yield Chunk(
                np.ascontiguousarray(samples, dtype=np.float32),
                int(result.sample_rate),
                int(result.token_count or 0),
                int(getattr(result, "segment_idx", 0)),
                int(getattr(result, "sequence_idx", 0)),
            )
        mx.synchronize()

    def tensors(self) -> dict[str, str]:
        """A checksum of every weight: levers that change the same ones are variants of one another, perhaps."""
        weights = dict(tree_flatten(self._parameters))
        return {name: f"{zlib.crc32(memoryview(value.view(mx.uint8))):08x}" for name, value in sorted(weights.items()) if value.size}

    def look(self, order: dict[str, Any]) -> dict[str, Any]:
        """A closer look that decides nothing: record and replay tokens, or time components."""
        looks = {"record": forced.record, "replay": forced.replay, "components": components.measure}
        return looks[order["what"]](self, order)

    def sentinels(self) -> dict[str, float]:
        """See sentinels.read."""
        return sentinels.read(self.context.model)

    def rows_taken(self) -> tuple[int, int] | None:
        """See together.Rows.taken."""
        return self.rows.taken()

    def peak_memory_bytes(self) -> int:
        return mx.get_peak_memory()

    def held_memory_bytes(self) -> int:
        return mx.get_active_memory()
