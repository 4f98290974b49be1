"""The worker's side of the desk: claims, beats, uploads and results over HTTP with a scoped token."""

from __future__ import annotations

import time
from typing import Any

import httpx


class Denied(Exception):
    """The host doesn't accept this worker's token: nothing to retry."""


class Lost(Exception):
    """The unit is no longer mine, or already settled."""


class Refused(Exception):
    """The host won't take what was sent; its sentence says why."""


class Unreachable(Exception):
    """The host did not answer, for as long as it was worth waiting."""


class Desk:
    """One connection to the host. Calls are retried while the host is away, for at most `patience` seconds."""

    def __init__(self, url: str, token: str, patience: float = 60.0) -> None:
        self.url, self.patience = url, patience
        self.http = httpx.Client(
            base_url=f"{url}/api/desk", headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(30, connect=5)
        )

    def call(self, method: str, path: str, patience: float | None = None, **kwargs: Any) -> httpx.Response:
        deadline = time.monotonic() + (self.patience if patience is None else patience)
        wait = 0.5
        while True:
            try:
                answer = self.http.request(method, path, **kwargs)
                if answer.status_code < 500:
                    break
                reason = f"it answered {answer.status_code}"
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            if time.monotonic() + wait > deadline:
                raise Unreachable(f"{self.url} can't be reached: {reason}")
            time.sleep(wait)
            wait = min(wait * 2, 5)
        if answer.status_code in (401, 403):
            raise Denied(f"{self.url} refused this worker's token. Make a new one with `manage.py add_token` and start the worker with it.")
        if answer.status_code == 409:
            raise Lost
        if answer.status_code in (413, 422):
            raise Refused(answer.json().get("message", answer.text[:300]))
        answer.raise_for_status()
        return answer

    def hello(self, facts: dict[str, Any]) -> dict[str, Any]:
        return self.call("POST", "/hello", json=facts).json()

    def claim(self, kind: str, loaded: str) -> dict[str, Any] | None:
        answer = self.call("POST", "/claim", json={"kind": kind, "loaded": loaded})
        return None if answer.status_code == 204 else answer.json()

    def alive(self) -> None:
        self.call("POST", "/alive", patience=4)

    def beat(self, unit: dict[str, Any]) -> None:
        # One missed beat is no tragedy: three fit into a lease.
        self.call("POST", f"/units/{unit['kind']}/{unit['lease']}/beat", patience=4)

    def upload(self, unit: dict[str, Any], file_sha256: str, data: bytes) -> None:
        self.call("PUT", f"/units/{unit['kind']}/{unit['lease']}/clips/{file_sha256}", content=data, headers={"Content-Type": "audio/flac"})

    def voice(self, pcm_sha256: str) -> bytes:
        """The recording a configuration's voice is cloned from."""
        return self.call("GET", f"/voices/{pcm_sha256}").content

    def finish(self, unit: dict[str, Any], **results: Any) -> None:
        self.call("POST", f"/units/{unit['kind']}/{unit['lease']}/finish", json=results)

    def fail(self, unit: dict[str, Any], error: str) -> None:
        """It went wrong here; it may go right the next time."""
        self.call("POST", f"/units/{unit['kind']}/{unit['lease']}/fail", json={"error": error})

    def refuse(self, unit: dict[str, Any], error: str, elsewhere: bool = False) -> None:
        """This worker can't do it at all. `elsewhere`: for a reason of its own, so that another should be asked whatever the unit is."""
        self.call("POST", f"/units/{unit['kind']}/{unit['lease']}/refuse", json={"error": error, "elsewhere": elsewhere})
