"""Settings of the whole project; everything a site may change comes from the environment."""

import socket
from pathlib import Path

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import environment as env
from config import tongues

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(env.text("EARWITNESS_VAR", str(BASE_DIR / "var"))).resolve()
try:
    VAR.mkdir(parents=True, exist_ok=True)
except OSError as error:
    raise ImproperlyConfigured(f"The folder {VAR} can't be made ({error.strerror}): set EARWITNESS_VAR to one you may write to.") from error
VERSION = next(line.split()[1] for line in (BASE_DIR / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("## "))

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.text("SECRET_KEY") or env.kept_secret(VAR / "secret_key")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", socket.gethostname(), *env.words("ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
#: Where people reach the site; used in printed links and invitations.
SITE_URL = env.text("EARWITNESS_URL", "http://127.0.0.1:8000").rstrip("/")
if SITE_URL.startswith("https://"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True

INSTALLED_APPS = [
    "gate",
    "listening",
    "synth",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "ninja",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

_sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(VAR / "earwitness.sqlite3"), "CONN_MAX_AGE": 60}
_url = env.text("DATABASE_URL")
DATABASES = {"default": dj_database_url.parse(_url, conn_max_age=60, conn_health_checks=True) if _url else _sqlite}
#: Other hosts may score on it, too; what they hold is theirs.
SHARED_DATABASE = bool(_url) and not _url.startswith("sqlite")
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # DEFERRED lost a third of concurrent votes to "database is locked"; IMMEDIATE queues the writers instead.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    DATABASES["default"]["TEST"] = {"NAME": str(VAR / "test.sqlite3")}  # shared memory would hide the locks
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20  # a vote is under 4 kB; clips are read as a stream

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "levers"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = tongues.found(BASE_DIR / "locale")
LOCALE_PATHS = [VAR / "locale"]  # compiled from locale/ when the application starts
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
_storage = env.text("EARWITNESS_STORAGE", str(VAR / "clips"))
if _storage.startswith("s3://"):
    _clips = {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": {"bucket_name": _storage.removeprefix("s3://")}}
else:
    _clips = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": _storage}}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(VAR / "media")}},
    "clips": _clips,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage" if DEBUG else "config.storage.StaticStorage"},
}
WHITENOISE_USE_FINDERS = DEBUG

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "media-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
SECURE_REFERRER_POLICY = "same-origin"  # no-referrer would send Origin: null and fail the CSRF check
X_FRAME_OPTIONS = "DENY"

#: The bundled Valkey listens on a unix socket; its path must fit into 108 bytes (sun_path).
BROKER_SOCKET = VAR / "run" / "valkey.sock"
REDIS_URL = env.text("REDIS_URL") or f"redis+socket://{BROKER_SOCKET}"
CELERY_BROKER_URL = REDIS_URL
#: The broker's address as other machines reach it; told to workers that say hello.
BROKER_FOR_WORKERS = env.text("EARWITNESS_BROKER") or REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_ACKS_LATE = False  # the lease in the database is the truth; a lost message is rung again
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 12 * 3600, "socket_connect_timeout": 2, "socket_timeout": 30}
CELERY_TASK_PUBLISH_RETRY = False  # a broker that is down must not hold a request: tend rings later
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ROUTES = {"synth.tasks.*": {"queue": "mlx"}, "gate.tasks.*": {"queue": "score"}}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

#: A worker's side: where its desk is, and who it is.
DESK_URL = env.text("EARWITNESS_DESK") or SITE_URL
WORKER_TOKEN = env.text("EARWITNESS_TOKEN")
WORKER_NAME = env.text("EARWITNESS_WORKER_NAME") or socket.gethostname()
#: A scoring host's side: the name its batches go by.
SCORER_NAME = env.text("EARWITNESS_SCORER_NAME") or WORKER_NAME
#: The recogniser of plans that name none (gate/recognisers.py says what can be written).
RECOGNISER = env.text("EARWITNESS_RECOGNISER") or "faster-whisper:whisper-base"
#: A language model that annotates clips, if the site wants one (gate/judges.py). It decides nothing.
JUDGE, JUDGE_URL, JUDGE_KEY = env.text("EARWITNESS_JUDGE"), env.text("EARWITNESS_JUDGE_URL"), env.text("EARWITNESS_JUDGE_KEY")
JUDGE_SENTENCES = env.integer("EARWITNESS_JUDGE_SENTENCES", 20)
#: Modules whose engines and levers this worker may import; never taken from a web form alone.
WORKER_MODULES = env.words("EARWITNESS_MODULES")
MODELS = Path(env.text("EARWITNESS_MODELS", str(VAR / "models")))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
