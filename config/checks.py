"""What is wrong with the settings is told at start, with how to mend it."""

from django.conf import settings
from django.core.checks import Error, Tags, Warning, register


@register(Tags.security)
def check_settings(app_configs, **kwargs):
    found = []
    if settings.REDIS_URL.startswith("redis+socket://") and len(str(settings.BROKER_SOCKET)) > 100:
        found.append(
            Error(
                f"The broker's socket path is {len(str(settings.BROKER_SOCKET))} characters long; a unix socket allows about 100.",
                hint="Set EARWITNESS_VAR to a shorter folder, or REDIS_URL to a Redis server.",
                id="config.E001",
            )
        )
    if not settings.SITE_URL.startswith(("http://", "https://")):
        found.append(Error(f"EARWITNESS_URL is {settings.SITE_URL!r}.", hint="Write it with http:// or https://.", id="config.E002"))
    if len(settings.SECRET_KEY) < 32:
        found.append(Error("SECRET_KEY is shorter than 32 characters.", hint="Unset it: one is made and kept in var/.", id="config.E003"))
    if settings.DEBUG and settings.SITE_URL.startswith("https://"):
        found.append(Warning("DEBUG is on for a site served over https.", hint="Unset DEBUG.", id="config.W001"))
    return found
