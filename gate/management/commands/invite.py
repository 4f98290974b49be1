"""`manage.py invite`: make a rater link."""

from datetime import timedelta

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from django.utils import timezone

from listening.models import Invitation, Panel
from synth.configuration import LANGUAGES


class Command(BaseCommand):
    help = "Make an invitation link for raters of a language."

    def add_arguments(self, parser):
        parser.add_argument("--language", default="en")
        parser.add_argument("--raters", type=int, default=24, help="how many may take it")
        parser.add_argument("--days", type=int, default=30)

    def handle(self, *args, language, raters, days, **options):
        if language not in LANGUAGES:
            raise CommandError(f"--language is {language!r}: use one of {', '.join(sorted(LANGUAGES))}.")
        if raters < 1 or days < 1:
            raise CommandError("--raters and --days are at least 1.")
        panel, _ = Panel.objects.get_or_create(language=language)
        made = Invitation.objects.create(panel=panel, max_raters=raters, expires_at=timezone.now() + timedelta(days=days))
        self.stdout.write(f"{settings.SITE_URL}{reverse('listening:welcome', args=[made.token])}")
