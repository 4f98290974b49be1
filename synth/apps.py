"""The synthesis application."""

from django.apps import AppConfig


class SynthConfig(AppConfig):
    name = "synth"

    def ready(self) -> None:
        import config.checks  # noqa: F401 - registers the checks
