"""An engine for tests: tones instead of speech, loaded through the extension point any user's engine would use.

Its `sampling.extra` says how it behaves: crash_on, hang_on, empty_on, raise_on (a word of the text), slow_s (seconds a clip),
detune (a factor on the pitch), noise (another hash each time), mute, memory_mb (what it says its peak memory was),
chunks (pieces the sound comes in) and chunk_s (seconds each takes).
"""

import os
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from synth.engine.protocol import Chunk, EngineRefused, Report

RATE = 24000


class Tone:
    def __init__(self, configuration, models: Path, modules):
        if configuration["model"].get("id") == "missing/model":
            raise EngineRefused("The model missing/model can't be loaded on this worker: there is none.")
        self.how = configuration.get("sampling", {}).get("extra", {})
        self.report = Report(digests={"weights": "tone"}, effects={"generate": sorted(self.how)}, environment={"tone": "1"})

    def peak_memory_bytes(self):
        return self.how.get("memory_mb", 100) << 20

    def generate(self, text, language, seed):
        for name, act in (("crash_on", lambda: os.kill(os.getpid(), 9)), ("hang_on", lambda: time.sleep(3600))):
            if self.how.get(name) and self.how[name] in text:
                act()
        if self.how.get("raise_on") and self.how["raise_on"] in text:
            raise ValueError("asked to fail")
        time.sleep(self.how.get("slow_s", 0))
        yield from self.sound(text, seed)

    def generate_batch(self, texts, language, seed):
        """All texts in the time of one."""
        time.sleep(self.how.get("slow_s", 0))
        for row, text in enumerate(texts):
            for part in self.sound(text, seed + row):
                yield replace(part, row=row)

    def sound(self, text, seed):
        if self.how.get("empty_on") and self.how["empty_on"] in text:
            return
        random = np.random.default_rng(seed if not self.how.get("noise") else None)
        t = np.arange(int(RATE * (0.4 + 0.02 * len(text)))) / RATE
        pitch = (200 + zlib.crc32(text.encode()) % 200) * self.how.get("detune", 1.0)
        wave = 0.2 * np.sin(2 * np.pi * pitch * t) + 0.01 * random.standard_normal(len(t))
        sound = (0 * wave if self.how.get("mute") else wave).astype(np.float32)
        for part in np.array_split(sound, self.how.get("chunks", 1)):
            time.sleep(self.how.get("chunk_s", 0))
            yield Chunk(part, RATE, len(text))
