"""Where clips are kept: FLAC files named by their own sha256."""

from __future__ import annotations

import hashlib
import uuid
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages

from synth import pcm
from synth.models import Clip


@cache
def storage() -> Storage:
    return storages["clips"]


def path(file_sha256: str) -> str:
    return f"{file_sha256[:2]}/{file_sha256}.flac"


def take(data: bytes, file_sha256: str) -> pcm.Decoded:
    """Checks an upload and keeps it; keeping it twice is keeping it once. Raises BadAudio."""
    if hashlib.sha256(data).hexdigest() != file_sha256:
        raise pcm.BadAudio("its sha256 is not the one it was sent under; it was damaged on the way")
    decoded = pcm.decode(data, only="FLAC")
    place = path(file_sha256)
    if storage().exists(place) and storage().size(place) == len(data):
        return decoded
    if isinstance(storage(), FileSystemStorage):
        part = storage().save(f"{place}.{uuid.uuid4().hex}.part", ContentFile(data))
        Path(storage().path(part)).replace(storage().path(place))  # whole or not at all, whoever is killed meanwhile
    else:
        storage().save(place, ContentFile(data))
    return decoded


def read(clip: Clip) -> bytes:
    with storage().open(path(clip.file_sha256)) as handle:
        return handle.read()


def samples(clip: Clip) -> pcm.Decoded:
    return pcm.decode(read(clip))


def keep(samples: npt.NDArray[np.float32], rate: int) -> Clip:
    """Stores sound that was not rendered - made here, or uploaded - as any other clip. Raises BadAudio."""
    data = pcm.encode_flac(np.asarray(samples, dtype=np.float32), rate)
    sha = hashlib.sha256(data).hexdigest()
    decoded = take(data, sha)
    defaults = {"file_sha256": sha, "sample_rate": rate, "samples": len(decoded.samples)}
    return Clip.objects.get_or_create(pcm_sha256=pcm.pcm_sha256(decoded.samples, rate), defaults=defaults)[0]
