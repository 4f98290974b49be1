"""People sent by a crowd platform: who they are there, and the code that says what became of them here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.crypto import salted_hmac

from listening.models import Rater

#: platform -> its names for the person and for the study.
NAMES = {"prolific": ("PROLIFIC_PID", "STUDY_ID"), "mturk": ("workerId", "hitId")}
#: What MTurk sends while somebody only looks at a task.
PREVIEW = ("assignmentId", "ASSIGNMENT_ID_NOT_AVAILABLE")
OUTCOMES = ("complete", "screened", "full")


@dataclass(frozen=True)
class Arrival:
    """How somebody came: by a plain link (no platform), to look only, or as a platform's worker."""

    platform: str = ""
    external_id: str = ""
    external_study: str = ""
    preview: bool = False
    framed: bool = False

    def fields(self) -> dict[str, str]:
        """What a form carries on."""
        if not self.platform:
            return {}
        person, study = NAMES[self.platform]
        return {person: self.external_id, study: self.external_study}


def arrival(given: QueryDict) -> Arrival:
    """Reads a platform's parameters. Names that can't be one are taken for no platform at all."""
    if given.get(PREVIEW[0]) == PREVIEW[1]:
        return Arrival(preview=True, framed=True)
    for platform, (person, study) in NAMES.items():
        who, where = given.get(person, ""), given.get(study, "")
        if re.fullmatch(r"[\w.:-]{1,100}", who) and re.fullmatch(r"[\w.:-]{0,100}", where):
            return Arrival(platform, who, where, framed=platform == "mturk" and "assignmentId" in given)
    return Arrival()


def known(came: Arrival) -> Rater | None:
    """The rater this worker is already, whichever browser they come from."""
    if not came.platform:
        return None
    return Rater.objects.filter(
        platform=came.platform, external_id=came.external_id, external_study=came.external_study, erased_at=None
    ).first()


def earlier(came: Arrival) -> Rater | None:
    """Somebody this worker was before, under another study of the platform."""
    if not came.platform:
        return None
    return Rater.objects.filter(platform=came.platform, external_id=came.external_id).order_by("pk").first()


def code(rater: Rater, outcome: str) -> str:
    """The code of an outcome: the platform's own if the invitation holds it, else one that only this server can make; always the same."""
    own: str = getattr(rater.invitation, f"code_{outcome}")
    return own or salted_hmac("completion", f"{rater.key}:{outcome}").hexdigest()[:10].upper()


def return_address(rater: Rater, outcome: str) -> str:
    """Where the platform wants its people back, or ''."""
    return rater.invitation.return_url.replace("{code}", code(rater, outcome))
