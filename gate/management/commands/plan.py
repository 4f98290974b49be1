"""`manage.py plan`: what a plan can detect, its chance of ending undecided when nothing is wrong, and what it costs."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from gate import planning, policy, site_policy, specfile
from gate.statistics import planner
from synth.configuration import Refused


class Command(BaseCommand):
    help = "Say what a plan can detect. Without a FILE it is the site's policy; a FILE is a spec, or the plan part of one, as YAML."

    def add_arguments(self, parser):
        parser.add_argument("file", type=Path, nargs="?")
        parser.add_argument("--sentences", type=int, help="default: the plan's, else 300")
        parser.add_argument("--replicates", type=int)
        parser.add_argument("--raters", type=int, default=12)
        parser.add_argument("--panel", choices=sorted(planner.TYPICAL), default="low", help="how much raters and sentences differ")

    def handle(self, *args, file, sentences, replicates, raters, panel, **options):
        try:
            body = specfile.mapping(file.read_text(encoding="utf-8")) if file else {}
            whole = {"lever", "levers"} & body.keys()  # a spec, or several; else the plan part alone
            body = (body.get("plan") or body.get("shared", {}).get("plan", {})) if whole else body
            plan = policy.parse(site_policy.filled(body | ({"replicates": replicates} if replicates is not None else {})))
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} can't be read: {error}.") from error
        except Refused as error:
            raise CommandError(error.message) from error
        count = sentences or plan.sentences or 300
        if count < 2 or raters < 1:
            raise CommandError("--sentences must be 2 or more, --raters 1 or more.")
        found = planning.outlook(plan, count, raters, panel)
        say = self.stdout.write
        say(f"{count} sentences x {plan.replicates}, {found.clips} clips an arm; {found.votes} votes by {found.raters} raters.")
        say("\nChance to pass when nothing is wrong, at a low, a typical and a high spread; sentences for 90 % at the typical one")
        say(f"{'':24}low  typ  high  needed")
        for row in planning.as_table(found):
            say(f"{row['label']:<22}{row['low']:>4}% {row['typical']:>3}% {row['high']:>4}%  {row['needed'] or '-':>6}")
        say(f"\nAll together: {found.passes:.0%}. It ends undecided with nothing wrong in {found.undecided:.0%} of cases.")
        costs = f"{found.synthesis_h:.1f} h of synthesis, {found.measuring_h:.1f} h of measuring on one core"
        say(f"About {costs}, {found.listening_h:.1f} h of listening.")
        for text in (*found.problems, found.hint):
            if text:
                say(text)
