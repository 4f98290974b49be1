"""The project's settings with a database, a folder and a broker of the tests' own."""

import os
import tempfile
from pathlib import Path

_root = Path(__file__).resolve().parent.parent
os.environ.setdefault("EARWITNESS_MODELS", str(_root / "var" / "models"))  # made once, shared
os.environ["EARWITNESS_VAR"] = os.environ.get("EARWITNESS_TEST_VAR") or tempfile.mkdtemp(prefix="ew-")
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "")
os.environ["REDIS_URL"] = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")

from config.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # noqa: F405
ALLOWED_HOSTS = ["*"]
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 12 * 3600, "socket_connect_timeout": 0.3, "socket_timeout": 30}
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405 - the live server's threads must not hold the test database
