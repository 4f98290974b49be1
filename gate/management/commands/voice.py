"""`manage.py voice`: list the recordings that voices can be cloned from, or add one."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from gate import voices
from synth.configuration import Refused
from synth.models import Voice


class Command(BaseCommand):
    help = "List the recordings voices can be cloned from; with a FILE (WAV or FLAC, one channel) add it."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path, nargs="?")
        parser.add_argument("--name", help="default: the file's name without its ending")
        parser.add_argument("--consent", default="", help="whose voice it is, and that they agreed to its being cloned")
        parser.add_argument("--text", default="", help="what is said in it")

    def handle(self, *args, file, name, consent, text, **options):
        if file is None:
            for voice in Voice.objects.select_related("clip").order_by("name"):
                self.stdout.write(f"{voice.clip.pcm_sha256}  {voice.clip.seconds:5.1f} s  {voice.name}  ({voice.consent})")
            return
        try:
            voice = voices.keep(name or file.stem, file.read_bytes(), consent, text)
        except OSError as error:
            raise CommandError(f"{file} can't be read: {error.strerror}.") from error
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Name it in a configuration by voice.reference: {voice.clip.pcm_sha256}")
