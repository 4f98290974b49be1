"""The deciding application."""

from django.apps import AppConfig


class GateConfig(AppConfig):
    name = "gate"

    def ready(self) -> None:
        import gate.signals  # noqa: F401 - connects the receivers
