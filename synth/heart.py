"""A thread that keeps a lease while long work is done, and says when the lease is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger("earwitness.heart")
BEAT_S = 8.0


class Heart(threading.Thread):
    """Calls `beat` every 8 s from `start` to `stop`. When it raises one of `gone`, calls `on_lost` and beats no more."""

    def __init__(
        self, beat: Callable[[], None], gone: tuple[type[Exception], ...], on_lost: Callable[[], None] = lambda: None,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True, name="heart")
        self._beat, self._gone, self._on_lost, self._at_end = beat, gone, on_lost, at_end
        self.lost = False
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopped.wait(BEAT_S):
                try:
                    self._beat()
                except self._gone:
                    self.lost = True
                    self._on_lost()
                    break
                except Exception:  # noqa: BLE001 - a database that is busy once must not cost the lease
                    log.exception("a beat failed; the next one follows")
        finally:
            self._at_end()

    def stop(self) -> None:
        self._stopped.set()
        self.join()
