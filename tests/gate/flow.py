"""A worker and a scorer in this process, for tests of the flow. Sound is real (the tone engine in a real child); nothing is inserted."""

from pathlib import Path

from django.test import Client

from gate.models import Token
from synth import desk, worker


class InProcessDesk(desk.Desk):
    """The worker's side of the desk, speaking to the host through Django's test client instead of a socket."""

    def __init__(self, name="mac"):
        self.client, self.secret = Client(), Token.issue(name, "worker")
        self.url, self.patience = "http://test", 1

    def alive(self):
        """Threads of a worker don't share a test's transaction; tests/synth/test_worker.py has them on a real server."""

    def beat(self, unit):
        pass

    def call(self, method, path, patience=None, json=None, content=None, headers=None):
        body = (
            {"data": content, "content_type": "audio/flac"} if content is not None else {"data": json, "content_type": "application/json"}
        )
        answer = self.client.generic(method, f"/api/desk{path}", *self._encoded(body), headers={"Authorization": f"Bearer {self.secret}"})
        if answer.status_code == 409:
            raise desk.Lost
        if answer.status_code in (413, 422):
            raise desk.Refused(answer.json()["message"])
        if answer.status_code == 401:
            raise desk.Denied("wrong token")
        assert answer.status_code < 300, answer.content
        return answer

    @staticmethod
    def _encoded(body):
        import json

        data = body["data"]
        return (data if isinstance(data, bytes) else json.dumps(data).encode(), body["content_type"])


def bench(models: Path, name="mac", device_class="test"):
    connection = InProcessDesk(name)
    connection.hello({"name": name, "device_class": device_class})
    return worker.Bench(connection, models, ["tests.tone"], models / "scratch", idle_wait_s=0)


def work(a_bench, *kinds):
    """Does units until there are none."""
    while any(a_bench.run(kind) for kind in kinds or ("preflight", "render")):
        pass
