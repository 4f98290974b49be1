"""A cloned voice: the reference recording brought to the model's rate, its embedding computed once instead of for every sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from synth import pcm
from synth.engine.levers import Context
from synth.engine.protocol import EngineRefused

#: Model types that can't use a recording without its words.
NEED_TEXT = ("fish_qwen3_omni", "sesame")


def recording(file: Path, sha256: str, rate: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Samples of the reference at `rate` Hz. Raises EngineRefused, also where the file is not the recording it is named after."""
    try:
        sound = pcm.decode(file)
    except (pcm.BadAudio, OSError) as error:
        raise EngineRefused(f"The reference recording can't be used on this worker: {error}.") from error
    if pcm.pcm_sha256(sound.samples, sound.sample_rate) != sha256:
        raise EngineRefused("The reference recording on this worker is damaged: delete its folder voices, and it is brought again.")
    if not float(np.max(np.abs(sound.samples))) > 1e-4:
        raise EngineRefused("The reference recording is silent: name one with speech in it in voice.reference.")
    return pcm.at_rate(sound, rate).astype(np.float32)


def apply(context: Context, accepted: set[str], kind: str, file: Path, sha256: str, text: str | None) -> int:
    """Makes the model speak with this voice. Returns 1, for the effects. Raises EngineRefused where it has no way to."""
    model = context.model
    if kind in NEED_TEXT and not text:
        raise EngineRefused("This model clones a voice from a recording and its words: give voice.reference_text, too.")
    if "ref_audio" not in accepted and "speaker_embedding" not in accepted:
        raise EngineRefused("This model has fixed voices; it can't clone one: use voice.preset instead of voice.reference.")
    type_ = getattr(getattr(model, "config", None), "tts_model_type", "base")
    if kind == "qwen3_tts" and type_ != "base":
        raise EngineRefused(f"A Qwen3-TTS checkpoint of the type {type_!r} ignores recordings: clone with a Base checkpoint.")
    tokenizer = getattr(model, "speech_tokenizer", None)
    if text and kind == "qwen3_tts" and not getattr(tokenizer, "has_encoder", True):
        raise EngineRefused(
            "This checkpoint can't listen to the words of a recording (its codec has no encoder): leave reference_text out."
        )
    extract = getattr(model, "extract_speaker_embedding", None)
    rate = getattr(model, "sample_rate", 24000)
    if "speaker_embedding" in accepted:  # the speaker's encoder may hear at another rate than the model speaks
        rate = getattr(model.config, "speaker_encoder_sample_rate", rate)
    samples = mx.array(recording(file, sha256, int(rate)))
    has_encoder = getattr(model, "speaker_encoder", True) is not None
    if extract is None or not has_encoder:
        context.generate["ref_audio"] = samples
        return 1
    try:
        embedding = extract(samples)
        mx.eval(embedding)
    except Exception as error:  # an encoder that is not there, a recording it can't hear
        raise EngineRefused(f"The model can't make a voice of the recording: {type(error).__name__}: {str(error)[:300]}.") from error
    if "speaker_embedding" in accepted:
        context.generate["speaker_embedding"] = embedding
        return 1
    context.generate["ref_audio"] = samples

    def remembered(audio: Any, *args: Any, **kwargs: Any) -> Any:
        same = audio.shape == samples.shape and bool(mx.array_equal(audio, samples))
        return embedding if same else extract(audio, *args, **kwargs)

    object.__setattr__(model, "extract_speaker_embedding", remembered)
    return 1
