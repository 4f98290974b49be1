"""Weights from a folder or a hub's cache, and a codec from elsewhere; digests say what they are."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from synth.engine import codec
from synth.engine.protocol import EngineRefused, Report, check_digest, offline_hint


def locate(model: dict[str, Any], models: Path) -> str:
    """Folder or hub name of the weights. A path without a slash is one of the bundled models."""
    if model.get("id"):
        return model["id"]
    path = Path(model["path"])
    if len(path.parts) == 1:
        path = models / path
    if not (path / "config.json").is_file():
        raise EngineRefused(f"There is no model at {model['path']!r} on this worker: put it there, or correct model.path.")
    return str(path)


def weights_digest(folder: Path) -> str:
    """sha256 over the names and contents of everything in the folder that decides the sound."""
    digest = hashlib.sha256()
    for file in sorted(p for p in folder.rglob("*") if p.suffix in (".safetensors", ".json", ".npz")):
        digest.update(str(file.relative_to(folder)).encode() + b"\0")
        with file.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def load(model: dict[str, Any], models: Path, report: Report) -> Any:
    """The model with its weights; what they are goes on record. Raises EngineRefused."""
    from mlx_audio import tts
    from mlx_audio.utils import get_model_path

    place = locate(model, models)
    options = {"revision": model["revision"]} if model.get("revision") and model.get("id") else {}
    elsewhere = _codec_folder(model.get("codec"), models, report)
    try:
        with codec.taken_from(elsewhere):
            loaded = tts.load(place, **options)
    except Exception as error:
        wanted = f"{place} at revision {model['revision']}" if options else place
        raise EngineRefused(
            f"The model {wanted} can't be loaded on this worker: {type(error).__name__}: {str(error)[:300]}.{offline_hint(model)}"
        ) from error
    found = report.digests["weights"] = weights_digest(get_model_path(place, **options))
    check_digest(f"The model at {place}", found, model.get("sha256"))
    return loaded


def _codec_folder(wanted: dict[str, Any] | None, models: Path, report: Report) -> Path | None:
    """Where a codec that is not the model's own lies; its digest goes on record."""
    if not wanted:
        return None
    from mlx_audio.utils import get_model_path

    options = {"revision": wanted["revision"]} if wanted.get("revision") and wanted.get("id") else {}
    try:
        folder: Path = get_model_path(locate(wanted, models), **options)
    except EngineRefused:
        raise
    except Exception as error:
        raise EngineRefused(f"The codec {wanted.get('id')} can't be fetched on this worker: {error}.{offline_hint(wanted)}") from error
    found = report.digests["model.codec"] = weights_digest(folder)
    check_digest(f"The codec at {folder.name}", found, wanted.get("sha256"))
    return folder
