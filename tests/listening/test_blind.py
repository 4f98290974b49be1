"""No byte of any response to a rater names or links what it must not."""

import json
import re
import uuid
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.test import Client

from listening import allocate
from listening.models import Pair, Rater, Trial
from synth.models import Clip, Configuration
from tests import factories
from tests.listening.test_ballot import browser, post

#: Words of the gate, in any case, as whole words or inside others.
TELLS = re.compile(rb"candidate|parent|lever|digest|configuration|reference|tested|verdict|control|quantis|kokoro", re.I)


def everything(response):
    headers = b"\n".join(f"{k.replace('Cache-Control', '')}: {v}".encode() for k, v in response.items())
    cookies = response.cookies.output().encode()
    body = (
        b""
        if response.get("Content-Type", "").startswith("audio/")
        else b"".join(response.streaming_content)
        if response.streaming
        else response.content
    )
    return headers + b"\n" + cookies + b"\n" + body


def static_of(page):
    """The files the page brings, and what they import."""
    found, queue = {}, re.findall(r'(?:src|href)="/static/([^"]+)"', page.content.decode())
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found[name] = (Path(settings.BASE_DIR) / "static" / name).read_bytes()
        queue += [str(Path(name).parent / p) for p in re.findall(r'from "\./([^"]+)"', found[name].decode())]
    return found


@pytest.fixture
def sitting(db):
    """Everything a rater receives, from the invitation to the thanks, errors included."""
    study = factories.study(pairs=6, votes_per_pair=2)
    lever = factories.registered(lever="slug-of-the-lever", title="Title of the lever", parent=factories.tone(name="name-of-the-one"))
    type(lever).objects.filter(pk=lever.pk).update(study=study, state="listening")
    study.panel.sample = factories.clip(500)
    study.panel.save()
    invited = factories.invitation()
    client, seen = Client(), []

    def get(path, method="get", *args, **kwargs):
        response = getattr(client, method)(path, *args, **kwargs)
        seen.append((path, response))
        return response

    link = f"/listen/go/{invited.token}/"
    get("/listen/")
    get("/listen/go/mistyped/")
    get(link)
    get(link, "post", {})
    get(link, "post", {"agree": "yes", "adult": "yes", "native": "yes"})
    get("/listen/check/")
    get("/listen/check/sound")
    get("/listen/check/", "post", {"headphones": "yes"})
    get("/listen/test/")
    while True:
        trial = get("/listen/next").json()
        if trial.get("finished"):
            break
        for side in ("left", "right"):
            get(trial[side])
        body = {"id": str(uuid.uuid4()), "trial": trial["trial"], "choice": "left", "log": {}}
        get("/listen/vote", "post", json.dumps(body), content_type="application/json")
        get("/listen/vote", "post", json.dumps(body | {"id": str(uuid.uuid4())}), content_type="application/json")
        get(trial["left"])
    get("/listen/thanks/")
    return seen


def test_a_sitting_is_whole(sitting):
    kinds = [r.status_code for path, r in sitting if path == "/listen/vote"]
    assert kinds == [201, 409] * 6


def test_no_response_names_what_is_compared(sitting):
    for path, response in sitting:
        found = TELLS.search(everything(response))
        assert found is None, (path, found, everything(response)[max(0, found.start() - 80) : found.end() + 40])


def test_no_response_holds_a_slug_a_title_a_name_or_a_digest(sitting):
    secrets = {"slug-of-the-lever", "Title of the lever", "name-of-the-one", *Configuration.objects.values_list("digest", flat=True)}
    secrets |= {c for row in Clip.objects.values_list("pcm_sha256", "file_sha256") for c in row}
    secrets |= {d[:12] for d in secrets if len(d) == 64}
    assert len(secrets) > 20
    for path, response in sitting:
        body = everything(response).decode("utf-8", "replace")
        assert not [s for s in secrets if s in body], path


def test_the_padding_can_not_be_told_by_who_knows_the_address(db):
    """The dither's seed is not the name in the address: what is made from that name matches nothing."""
    from listening import audio
    from synth import pcm

    study = factories.study(pairs=1)
    short = factories.clip(900, (0.1 * np.sin(np.arange(12000) / 9)).astype(np.float32))
    study.pairs.update(tested=short)
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    for key in (trial.left_key, trial.right_key):
        served = browser(rater).get(f"/listen/sound/{key}").content
        silence = pcm.Decoded(np.zeros(24000, np.float32), 24000)
        guess = audio.copy(silence, 0.0, 24000, key)
        assert np.mean(np.frombuffer(served[-4000:], "<i2") == np.frombuffer(guess[-4000:], "<i2")) < 0.7


def test_no_static_file_of_the_pages_does_either(sitting):
    files = {}
    for _, response in sitting:
        if response.status_code == 200 and response.get("Content-Type", "").startswith("text/html"):
            files |= static_of(response)
    assert {"js/listen/trial.js", "js/listen/player.js", "js/listen/net.js", "css/listen.css"} <= set(files)
    for name, body in files.items():
        assert TELLS.search(body) is None, (name, TELLS.search(body))
        assert b"console." not in body


def test_nothing_may_be_kept_and_nothing_links_two_answers(sitting):
    for path, response in sitting:
        assert response["Cache-Control"] == "no-store, private", path
        assert not any(h in response for h in ("ETag", "Last-Modified", "Expires"))


def test_every_trial_has_one_shape(sitting):
    trials = [r.json() for path, r in sitting if path == "/listen/next" and not r.json().get("finished")]
    assert len({tuple(t) for t in trials}) == 1
    assert {tuple(type(v) for v in t.values()) for t in trials} == {(str, str, str, str, str, str, str, bool, int, int)}
    assert len({len(t[k]) for t in trials for k in ("trial",)}) == 1
    assert len({len(t[side]) for t in trials for side in ("left", "right")}) == 1


def test_both_sides_have_one_length_and_headers_alike(sitting):
    sounds = [r for path, r in sitting if path.startswith("/listen/sound/") and r.status_code == 200]
    assert len(sounds) == 12
    for left, right in zip(sounds[::2], sounds[1::2], strict=True):
        assert len(left.content) == len(right.content) and left.content != right.content
        assert dict(left.items()) == dict(right.items())


def test_sound_is_served_only_to_its_rater_and_only_while_the_trial_is_open(db):
    factories.study()
    mine, other = factories.rater(), factories.rater()
    trial = allocate.next_trial(mine)
    url = f"/listen/sound/{trial.left_key}"
    assert browser(mine).get(url).status_code == 200
    assert [browser(other).get(url).status_code, Client().get(url).status_code] == [404, 404]
    assert post(browser(mine), trial).status_code == 201
    assert browser(mine).get(url).status_code == 404


def test_identical_recordings_look_different_on_the_wire(db):
    study = factories.study(pairs=1)
    pair = study.pairs.get()
    Pair.objects.filter(pk=pair.pk).update(tested=pair.reference)
    rater = factories.rater()
    trial = allocate.next_trial(rater)
    left, right = (browser(rater).get(f"/listen/sound/{k}").content for k in (trial.left_key, trial.right_key))
    assert left != right and len(left) == len(right)


def test_the_raters_cookie_can_not_be_made_up(db):
    factories.study()
    client = Client()
    client.cookies["listener"] = f"{factories.rater().key}:forged"
    assert client.get("/listen/next").status_code == 403
    assert Trial.objects.count() == 0


def test_a_page_may_load_nothing_from_elsewhere(sitting):
    for _, response in sitting:
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_raters_are_made_only_by_consent(sitting):
    assert Rater.objects.count() == 1
    assert Rater.objects.get().consents.count() == 1
