"""`manage.py corpus`: list the corpora, or add one from a file."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from gate import corpora
from gate.models import Corpus
from synth.configuration import Refused


class Command(BaseCommand):
    help = "List the corpora; with a FILE (.txt, .csv or .jsonl) add it."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path, nargs="?")
        parser.add_argument("--bundled", action="store_true", help="bring in the corpora that come with Earwitness")
        parser.add_argument("--name", help="default: the file's name without its ending")
        parser.add_argument("--language", help="two letters, as in `hi`")
        parser.add_argument("--licence", default="")
        parser.add_argument("--source", default="")
        parser.add_argument("--revision", default="")

    def handle(self, *args, file, name, language, bundled, **options):
        if bundled:
            corpora.bundled()
        if file is None:
            for found in Corpus.objects.order_by("language", "name"):
                self.stdout.write(f"{found.language}  {found.sentences.count():>6} sentences  {found.name}  {found.licence}")
            return
        if not language:
            raise CommandError("Say which language it is in: --language hi, for example.")
        try:
            data = file.read_bytes()
            lines = corpora.read(data, file.name, language)
            taken = corpora.keep(name or file.stem, language, lines, data, **{k: options[k] for k in ("licence", "source", "revision")})
        except OSError as error:
            raise CommandError(f"{file} can't be read: {error.strerror}.") from error
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{taken.corpus.name}: {len(lines)} sentences{'' if taken.made else ', known already'}.")
        for first, second in taken.near[:20]:
            self.stderr.write(f"Warning: lines {first} and {second} are nearly the same; only one of them counts as fresh at a time.")
        if len(taken.near) > 20:
            self.stderr.write(f"Warning: {len(taken.near) - 20} more pairs are nearly the same.")
