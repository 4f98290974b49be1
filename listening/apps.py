"""The listening application."""

from django.apps import AppConfig
from django.conf import settings

from config import tongues


class ListeningConfig(AppConfig):
    name = "listening"

    def ready(self) -> None:
        tongues.compile_all(settings.BASE_DIR / "locale", settings.LOCALE_PATHS[0])
