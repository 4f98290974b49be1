"""Addresses: engineers under /, raters under /listen/, machines under /api/."""

from django.contrib import admin
from django.urls import include, path

from gate.api import api

urlpatterns = [
    path("listen/", include("listening.urls")),
    path("api/", api.urls),
    path("admin/", admin.site.urls),
    path("", include("gate.urls")),
]
