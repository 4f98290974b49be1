"""What the trial page's script says, in the language of the page."""

from __future__ import annotations

from django.utils.translation import gettext as _

#: Remarks only speakers of these languages are offered.
ONLY = {"retroflex": ("hi",), "aspirated": ("hi",)}


def for_page(language: str) -> dict[str, object]:
    """Args: language, of the sentences."""
    tags = {
        "mispronounced": _("mispronounced"), "noise": _("noise or click"), "pause": _("wrong pause"), "cut": _("cut off"),
        "robotic": _("robotic"), "accent": _("wrong accent"), "pace": _("too fast or slow"), "reading": _("misread number or name"),
        "other-voice": _("not the same voice"), "retroflex": _("retroflex sound wrong"), "aspirated": _("aspirated sound wrong"),
    }  # fmt: skip
    return {
        "play": {"left": _("Play the first"), "right": _("Play the second")}, "side": {"left": _("First"), "right": _("Second")},
        "heard": _("heard"), "loading": _("Loading the sound ..."), "listen": _("Listen to both to the end, then answer."),
        "answer": _("Choose one of the three answers."), "retrying": _("The connection is slow; still trying ..."),
        "missing": _("This sound could not be loaded; here is another one."),
        "refused": _("That comparison was closed meanwhile; here is the next one."), "waiting": _("1 answer waiting to be sent"),
        "count": _("{n} of {all}"), "practice": _("Practice"), "undone": _("Your last answer was taken back; answer again."),
        "no_undo": _("This answer can't be taken back any more."), "remark": _("What is wrong with “{word}”?"),
        "whole": _("What is wrong with it?"), "tags": {k: v for k, v in tags.items() if language in ONLY.get(k, (language,))},
        "link": _("Open this link on the other device. It is yours alone:"), "begins": _("Practice is over. Now the real test begins."),
    }  # fmt: skip
