"""The whole product as a person starts it: `manage.py up` with everything real, in a folder of its own."""

import atexit
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path

import httpx

from config.supervisor import free_port

ROOT = Path(__file__).resolve().parent.parent.parent


@cache
def static_files():
    """Collected once for all stacks of this run; compressing them takes seconds."""
    folder = Path(tempfile.mkdtemp(prefix="ew-"))
    env = os.environ | {"EARWITNESS_ENV": "system", "EARWITNESS_VAR": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"}
    subprocess.run([sys.executable, "manage.py", "collectstatic", "-v0", "--noinput"], cwd=ROOT, env=env, check=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "static"


def own_database():
    """A database of its own where the suite runs on Postgres; (url, name) or ('', '')."""
    server = os.environ.get("TEST_DATABASE_URL", "")
    if not server.startswith("postgres"):
        return "", ""
    import psycopg

    name = f"ew_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return re.sub(r"/[^/]*$", f"/{name}", server), name


class Stack:
    def __init__(self, *options, **env):
        self.var = Path(tempfile.mkdtemp(prefix="ew-"))
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        url, self.database = own_database()
        models = os.environ.get("EARWITNESS_MODELS") or str(ROOT / "var" / "models")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("EARWITNESS", "DJANGO", "REDIS", "DATABASE"))}
        logging.getLogger("httpx").setLevel(logging.WARNING)
        self.env = kept | {
            "EARWITNESS_ENV": "system", "EARWITNESS_VAR": str(self.var), "EARWITNESS_MODELS": models, "DATABASE_URL": url,
            "EARWITNESS_MODULES": "tests.tone", "EARWITNESS_URL": self.base, **env,
        }  # fmt: skip
        self.options = ["--port", str(self.port), "--no-demo", *options]
        self.process, self.reader = None, ""
        shutil.copytree(static_files(), self.var / "static")

    def __enter__(self):
        self.start()
        return self

    def start(self):
        self.log = (self.var / "up.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *self.options], cwd=ROOT, env=self.env, stdout=self.log, stderr=subprocess.STDOUT
        )
        self.wait(lambda: "Ctrl-C stops everything" in self.said(), 60, "the pages")

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if exc[0] is not None:
            for log in [self.var / "up.log", *sorted((self.var / "log").glob("*.log"))]:
                print(f"== {log.name}\n{log.read_text()[-3000:]}")
        self.drop()

    def drop(self):
        shutil.rmtree(self.var, ignore_errors=True)
        if self.database:
            import psycopg

            with psycopg.connect(os.environ["TEST_DATABASE_URL"], autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def said(self):
        return (self.var / "up.log").read_text()

    def wait(self, happened, seconds, what):
        deadline = time.monotonic() + seconds
        while not happened():
            if self.process.poll() is not None:
                raise AssertionError(f"up ended while waiting for {what}:\n{self.said()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come within {seconds} s:\n{self.said()}")
            time.sleep(0.2)

    def manage(self, *args, check=True, text=None):
        run = subprocess.run([sys.executable, "manage.py", *args], cwd=ROOT, env=self.env, capture_output=True, text=True, input=text)
        if check and run.returncode:
            raise AssertionError(f"{args} exited with {run.returncode}: {run.stdout}{run.stderr}")
        return run

    def ask(self, expression):
        """The value of an expression over the models, as JSON."""
        code = f"import json\nfrom gate.models import *\nfrom synth.models import *\nfrom listening.models import *\nprint('=>' + json.dumps({expression}))"
        out = self.manage("shell", "--no-imports", "-c", code).stdout
        return json.loads(out.split("=>", 1)[1])

    def register(self, *specs):
        import yaml

        file = self.var / f"{uuid.uuid4().hex}.yaml"
        file.write_text(yaml.safe_dump({"levers": list(specs)}))
        return self.manage("register", str(file))

    def state(self, slug):
        """What CI would read over HTTP."""
        if not self.reader:
            self.reader = self.manage("add_token", "ci", "--kind", "reader").stdout.strip()
        return httpx.get(f"{self.base}/api/levers/{slug}", headers={"Authorization": f"Bearer {self.reader}"}).json()

    def dashboard(self):
        """An engineer's browser, logged in through the printed link."""
        client = httpx.Client(base_url=self.base, follow_redirects=True)
        link = re.search(r"Dashboard.*: (http\S+)", self.said())[1]
        assert client.get(link).status_code == 200
        return client

    def rater(self):
        """A rater's browser that has agreed and checked its sound."""
        client = httpx.Client(base_url=self.base, follow_redirects=True)
        link = re.search(r"Rater link.*: +(http\S+)", self.said())[1]
        page = client.get(link)
        form = {"csrfmiddlewaretoken": re.search(r'csrfmiddlewaretoken" value="(\w+)"', page.text)[1]}
        page = client.post(link, data=form | {"agree": "yes", "adult": "yes", "native": "yes"})
        form["csrfmiddlewaretoken"] = re.search(r'csrfmiddlewaretoken" value="(\w+)"', page.text)[1]
        client.post("/listen/check/", data=form | {"headphones": "yes"})
        return client

    def children(self):
        return {c["name"]: c["pid"] for c in json.loads((self.var / "run" / "up.json").read_text())["children"]}

    def kill(self, name):
        """kill -9 of one process, the moment it is there."""
        self.wait(lambda: name in self.children(), 30, name)
        os.kill(self.children()[name], signal.SIGKILL)


def vote(client, choose):
    """Answers everything this rater is given; returns the answers' number."""
    given = 0
    while True:
        trial = client.get("/listen/next").json()
        if trial.get("finished"):
            return given
        sounds = [client.get(trial[side]) for side in ("left", "right")]
        assert [s.headers["content-type"] for s in sounds] == ["audio/wav"] * 2
        body = {"id": str(uuid.uuid4()), "trial": trial["trial"], "choice": choose(given), "log": {"seconds": 5}}
        answer = client.post("/listen/vote", json=body, headers={"X-CSRFToken": client.cookies["csrftoken"]})
        assert answer.status_code == 201, answer.text
        given += 1
