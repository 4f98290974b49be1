"""The way of a rater: which page comes next, being let in, being tested, being forgotten."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils import timezone, translation
from django.utils.crypto import salted_hmac

from listening import allocate, platforms
from listening.models import Consent, Invitation, Pair, Qualification, Rater, Trial, Vote, Word
from listening.platforms import Arrival

CONSENT_VERSION = "2026-12"
#: A qualification holds so long.
HOLDS = timedelta(days=90)
#: Words asked, the fewest that make a test of it, the share that must be right, and who must have approved a recording.
ASKED, FEWEST, PASSED, APPROVALS = 8, 4, 0.75, 2
RESUME_SALT, RESUME_AGE = "go-on", 90 * 24 * 3600


def admit(invitation: Invitation, came: Arrival, adult: bool, native: bool) -> tuple[Rater | None, bool]:
    """The rater this visitor is from now on, and whether they are new; else the one this platform's worker is already.

    None when the last place is gone. Who was screened out on an earlier visit is screened out.
    """
    try:
        with transaction.atomic():
            locked = Invitation.objects.select_for_update().get(pk=invitation.pk)
            if locked.why_closed():
                return None, False
            earlier = platforms.earlier(came)
            before = earlier.visits().filter(panel=locked.panel_id).exclude(screened_out_at=None).first() if earlier else None
            screened = before.screened_out_for if before else "" if adult and native else "language" if adult else "age"
            rater = Rater.objects.create(
                panel_id=locked.panel_id, invitation=locked, platform=came.platform, external_id=came.external_id,
                external_study=came.external_study, interface=translation.get_language() or "en", screened_out_for=screened,
                screened_out_at=timezone.now() if screened else None, first_id=earlier.person if earlier else None,
            )  # fmt: skip
            Consent.objects.create(rater=rater, version=CONSENT_VERSION, language=translation.get_language() or "en")
            return rater, True
    except IntegrityError:  # the same worker, in two windows at once
        return Rater.objects.get(platform=came.platform, external_id=came.external_id, external_study=came.external_study), False


def step(rater: Rater) -> str:
    """The page this rater belongs on: check, words, test or thanks."""
    if rater.screened_out_at:
        return "thanks"
    if rater.sound_checked_at is None:
        return "check"
    return "test" if qualified(rater) else "words"


def usable_words(rater: Rater) -> list[Word]:
    """The words this rater is asked: approved by two people, chosen and ordered for this rater, the same at every visit."""
    found = list(
        Word.objects.filter(panel=rater.panel, retired_at=None).annotate(n=Count("approved_by")).filter(n__gte=APPROVALS).order_by("pk")
    )
    if len(found) < FEWEST:
        return []
    chance = random.Random(rater.key.int)  # noqa: S311 - an order, not a secret
    return chance.sample(found, min(ASKED, len(found)))


def options(rater: Rater, word: Word) -> list[str]:
    """What may have been said, in an order that tells nothing."""
    both = [word.said, word.other]
    lot = salted_hmac("words", f"{rater.key}:{word.pk}").hexdigest()  # the key stands in the cookie: it must not foretell the order
    return both if int(lot[0], 16) % 2 else both[::-1]


def qualified(rater: Rater) -> bool:
    """Whether the language needs no (further) test: passed not long ago, or nothing is there to test it with."""
    methods = set(rater.qualifications.filter(passed=True, at__gt=timezone.now() - HOLDS).values_list("method", flat=True))
    if Qualification.Method.TESTED in methods:
        return True
    if usable_words(rater):
        return False  # who only said so is asked, once there is something to ask
    if not methods:
        Qualification.objects.create(rater=rater, method=Qualification.Method.DECLARED, passed=True)
    return True


def examine(rater: Rater, answers: dict[int, str]) -> bool:
    """Grades the words; a rater who knows too few is screened out, once and for all. answers: primary key of a word -> what was heard."""
    with transaction.atomic():
        Rater.objects.select_for_update().get(pk=rater.pk)
        done = rater.qualifications.filter(method=Qualification.Method.TESTED, at__gt=timezone.now() - HOLDS).order_by("-pk").first()
        if done:
            return done.passed  # a second click, or another tab
        asked = usable_words(rater)
        right = sum(answers.get(word.pk) == word.said for word in asked)
        passed = right >= PASSED * len(asked)
        Qualification.objects.create(rater=rater, method=Qualification.Method.TESTED, right=right, asked=len(asked), passed=passed)
        if not passed:
            Rater.objects.filter(pk=rater.pk).update(screened_out_at=timezone.now(), screened_out_for="words")
        return passed


def resume_token(rater: Rater) -> str:
    return signing.dumps(str(rater.key), salt=RESUME_SALT)


def by_resume(token: str) -> Rater | None:
    try:
        key = signing.loads(token, salt=RESUME_SALT, max_age=RESUME_AGE)
    except signing.BadSignature:
        return None
    return Rater.objects.filter(key=key, erased_at=None).first()


def answered(rater: Rater) -> int:
    """Standing answers, practice aside."""
    return Vote.objects.filter(trial__rater=rater, superseded_at=None).exclude(trial__pair__kind=Pair.Kind.PRACTICE).count()


def outcome(rater: Rater) -> str:
    """What became of this rater: complete, screened, full (nothing was left for them), or '' while something is still to do."""
    if rater.screened_out_at:
        return "screened"
    if allocate.something_left(rater):
        return ""
    return "complete" if answered(rater) else "full"


def erase(rater: Rater) -> None:
    """Forgets who this was, on every visit: names, consents, what their browser said. Answers stay as bare numbers that point to nobody.

    Answers of tests that are still open are withdrawn; what a verdict has read stays, or nobody could recompute it.
    """
    with transaction.atomic():
        now = timezone.now()
        visits = list(rater.visits().values_list("pk", flat=True))
        mine = Vote.objects.filter(trial__rater__in=visits)
        mine.filter(superseded_at=None, trial__pair__study__open=True).update(superseded_at=now)
        Trial.objects.filter(rater__in=visits, pair__study__open=True).update(state=Trial.State.LAPSED)
        for vote in mine:
            vote.log = {k: v for k, v in vote.log.items() if k in ("share", "tail", "first", "seconds", "frames", "rate", "glitches")}
            vote.save(update_fields=["log"])
        Consent.objects.filter(rater__in=visits).delete()
        for pk in visits:
            Rater.objects.filter(pk=pk).update(key=uuid.uuid4())
        Rater.objects.filter(pk__in=visits).update(
            external_id="", external_study="", platform="", interface="", headphones=None, headphone_check=[],
            erased_at=now,
        )  # fmt: skip
