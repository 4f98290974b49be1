"""`manage.py seeds`: the published levers this project grew from, with their authors' label beside ours."""

import json

from django.conf import settings
from django.core.management.base import BaseCommand

from gate import reasons, seeds

FILE = settings.BASE_DIR / "tests" / "vectors" / "seeds.json"


def levers() -> list[dict]:
    tables = json.loads(FILE.read_text(encoding="utf-8"))["tables"]
    return next(t["rows"] for t in tables if t["table"] == "levers")


def table() -> str:
    """Markdown, as docs/seed-verdicts.md holds it."""
    lines = ["| lever | its authors | ours | at a last look | why |", "|---|---|---|---|---|"]
    for row in seeds.judged(levers()):
        why = "; ".join(reasons.explain(code)[0].rstrip(".") for code in row.ours.reasons if not code.startswith("evidence:"))
        mark = "" if not row.differs else "**"
        lines.append(f"| {row.name} | {row.theirs} | {mark}{row.ours.verdict}{mark} | {row.last.verdict} | {why or '-'} |")
    return "\n".join(lines)


class Command(BaseCommand):
    help = "Print the published levers with their authors' verdict beside ours, and why they differ."

    def handle(self, *args, **options):
        self.stdout.write(table())
