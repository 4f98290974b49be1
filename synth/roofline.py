"""What a frame must read from memory, and the time that takes: a prediction, made before anything is measured. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Memory bandwidth by chip, GB/s, as Apple gives it.
BANDWIDTH = {
    "Apple M1": 68.25, "Apple M1 Pro": 200.0, "Apple M1 Max": 400.0, "Apple M1 Ultra": 800.0, "Apple M2": 100.0, "Apple M2 Pro": 200.0,
    "Apple M2 Max": 400.0, "Apple M2 Ultra": 800.0, "Apple M3": 100.0, "Apple M3 Pro": 150.0, "Apple M3 Max": 400.0,
    "Apple M3 Ultra": 819.0, "Apple M4": 120.0, "Apple M4 Pro": 273.0, "Apple M4 Max": 546.0, "Apple M5": 153.0, "Apple M5 Pro": 307.0,
}  # fmt: skip
#: Shares of the bandwidth that decoding was seen to reach.
REACHED = (0.65, 0.69)


def bits_per_weight(bits: float, group: int = 0) -> float:
    """Bits a quantised weight costs, its group's scale and offset (16 bits each) included; `group` 0 for plain ones."""
    return bits + 32 / group if group else bits


@dataclass(frozen=True)
class Traffic:
    """Bytes that one frame of speech reads: weights once, weights again on each of `passes`, and the cache of keys and values."""

    once: float
    repeated: float = 0.0
    passes: int = 0
    cache: float = 0.0

    @property
    def frame(self) -> float:
        return self.once + self.passes * self.repeated + self.cache


def milliseconds(frame_bytes: float, gb_per_s: float, share: float = 1.0) -> float:
    """Time to read so much at this share of the bandwidth."""
    return frame_bytes / (gb_per_s * 1e9 * share) * 1e3


def predict(traffic: Traffic, device_class: str) -> dict[str, Any]:
    """The prediction for the record: bytes a frame, and where the chip is known the range of milliseconds its frame takes at best."""
    chip = device_class.rsplit(", ", 1)[-1]
    found: dict[str, Any] = {"gb_per_frame": round(traffic.frame / 1e9, 4), "passes": traffic.passes}
    if chip in BANDWIDTH:
        fast, slow = (milliseconds(traffic.frame, BANDWIDTH[chip], share) for share in reversed(REACHED))
        found |= {"gb_per_s": BANDWIDTH[chip], "ms_per_frame": [round(fast, 2), round(slow, 2)]}
    return found
