"""The Celery application. A message is only permission to do one unit of work (design, section 4)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
app = Celery("earwitness")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["synth", "gate"])
