"""What a classifier can make of everything a browser is told, except the decoded sound: no more than chance."""

import json
import random
import re
import time
import uuid

import numpy as np
import pytest

from listening import allocate, controls
from listening.models import Pair
from tests import factories
from tests.listening.test_ballot import browser

pytestmark = pytest.mark.slow
TRIALS, WORDS = 400, ["lamp", "river", "garden", "seven", "quietly", "bridges", "afternoon", "a", "of", "morning", "their", "shoulders"]


def spoken(chance, text, stretch=1.0):
    """A recording as long as its text takes, give or take."""
    seconds = (0.35 + 0.065 * len(text)) * chance.uniform(0.85, 1.15) * stretch
    t = np.arange(int(24000 * seconds)) / 24000
    loud = (0.5 + 0.5 * np.sin(2 * np.pi * 3 * t + chance.random())) * (t > 0.1) * (t < t[-1] - 0.1)
    return factories.clip(samples=(0.3 * loud * np.sin(2 * np.pi * chance.uniform(120, 260) * t)).astype(np.float32))


def sentence(chance, seen):
    while True:
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randrange(5, 17))).capitalize() + "."
        if text not in seen:
            seen.add(text)
            return text


def study(chance, seen):
    """Tests whose candidate is a tenth longer, and controls, all from sentences of one kind."""
    made = factories.study(pairs=0, votes_per_pair=2)
    from listening import audio
    from synth import clips

    def pair(row, first, second, **what):
        gains = audio.gains(clips.samples(first), clips.samples(second)) or (0.0, 0.0)
        Pair.objects.create(
            study=made, sentence=row, reference=first, tested=second, gain_reference=gains[0], gain_tested=gains[1],
            first_side=chance.randrange(2), **what,
        )  # fmt: skip

    for _ in range(60):
        text = sentence(chance, seen)
        pair(factories.sentence(text), spoken(chance, text), spoken(chance, text, 1.1))
    good = [(factories.sentence(text), spoken(chance, text)) for text in (sentence(chance, seen) for _ in range(22))]
    rows = {row.pk: row for row, _ in good}
    instructions = {answer: spoken(chance, "Please stop here and answer so.") for answer in ("left", "same", "right")}
    both = [(max(p.reference.seconds, p.tested.seconds), len(p.sentence.text)) for p in made.pairs.all()]
    made.pace = audio.pace_of(both)
    made.save()
    for found in controls.make([(row.pk, clip) for row, clip in good], instructions, 15.0):
        pair(rows[found.sentence], found.reference, found.tested, kind=found.kind, damage=found.damage, expected=found.expected)


def numbers(text):
    """A text as numbers: its length, and how often each kind of character stands in it."""
    kinds = (r"[a-z]", r"[A-Z]", r"\d", r"[-_]")
    return [len(text), *(len(re.findall(k, text)) for k in kinds), *(ord(c) for c in text[:4])]


def heard(client, said, head):
    """Features of one trial as a browser is told of it, and of its left and right sound apart."""
    sides = {}
    for side in ("left", "right"):
        begin = time.perf_counter()
        answer = client.get(said[side])
        took = time.perf_counter() - begin
        sides[side] = [
            *numbers(said[side].rsplit("/", 1)[1]), len(answer.content), took, len(answer.headers), len(str(dict(answer.headers))),
            *np.frombuffer(answer.content[:44], np.uint8), len(answer.headers.get("Content-Length", "")),
        ]  # fmt: skip
    whole = [
        *numbers(said["trial"]), len(json.dumps(said)), len(said["sentence"]), said["done"], said["total"], len(head), len(sides["left"]),
        sides["left"][9], sides["left"][9] / len(said["sentence"]), list(said).index("left"),
    ]  # fmt: skip
    return whole, sides["left"], sides["right"]


_collected = {}


def collect(seed):
    """Rows, sides, kinds and pairs of TRIALS trials; made once."""
    if seed not in _collected:
        _collected[seed] = _collect(random.Random(seed))
    return _collected[seed]


def _collect(chance):
    seen = set()
    for _ in range(5):
        study(chance, seen)
    rows, tested, control, pairs = [], [], [], []
    while len(rows) < TRIALS:
        rater = factories.rater()
        rater.practised_at = "2026-01-01T00:00Z"
        rater.save()
        client = browser(rater)
        for place in range(40):
            answer = client.get("/listen/next")
            said = answer.json()
            if said.get("finished") or len(rows) == TRIALS:
                break
            trial = allocate.standing(rater)
            whole, left, right = heard(client, said, str(dict(answer.headers)))
            rows.append((whole + [place], left, right))
            tested.append(trial.tested_side)
            control.append(trial.pair.kind != "test")
            pairs.append(trial.pair_id)
            body = {"id": str(uuid.uuid4()), "trial": said["trial"], "choice": chance.choice(("left", "same", "right")), "log": {}}
            client.post("/listen/vote", json.dumps(body), content_type="application/json")
    return rows, np.array(tested), np.array(control), np.array(pairs)


def area(x, y, pairs):
    """Area under the curve of a forest's guesses, each about pairs it has not seen: knowing one by heart is no leak."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_score

    # Within each fold, then averaged: guesses pooled over folds are worse than chance by themselves, as what one fold has too much of
    # the others had too little of.
    forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0)
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    return float(cross_val_score(forest, x, y, groups=pairs, cv=folds, scoring="roc_auc").mean())


def by_chance(y):
    """Three standard errors of such an area around a half."""
    a, b = y.sum(), len(y) - y.sum()
    return 3 * np.sqrt((a + b + 1) / (12 * a * b))


def told(seed):
    """What a classifier tells better than chance in 400 trials of their own: tokens are new each time, so a leak shows again, a fluke does not."""
    rows, tested, control, pairs = collect(seed)
    assert len(rows) == TRIALS and 60 < control.sum() < 120
    assert len(set(pairs)) > 250
    differences = np.array([np.r_[whole, left, right, np.subtract(left, right)] for whole, left, right in rows], dtype=float)
    tests = ~control
    found = set()
    if abs(area(differences[tests], tested[tests], pairs[tests]) - 0.5) >= by_chance(tested[tests]):
        found.add("candidate from parent")
    if area(differences, control, pairs) - 0.5 >= by_chance(control):
        found.add("control from test")
    return found


def test_nothing_but_the_sound_tells_candidate_from_parent_or_control_from_test(db):
    suspicious = told(5)
    assert not suspicious or not suspicious & told(6)


def test_the_classifier_would_find_a_leak(db):
    """The same forest on the same rows, with one telling byte put in: it is found."""
    rows, tested, _, pairs = collect(5)
    x = np.array([np.r_[left, right] for _, left, right in rows], dtype=float)
    leak = np.where(np.random.default_rng(1).random(len(x)) < 0.8, tested, 1 - tested)
    assert area(np.c_[x, leak], tested, pairs) - 0.5 > by_chance(tested)
