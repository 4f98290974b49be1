"""The listening application."""

from django.apps import AppConfig


class ListeningConfig(AppConfig):
    name = "listening"
