"""The rater's way in a real browser: practice, remarks, undo, breaks, a lost network, every page by axe-core."""

from importlib.resources import files

import pytest
from django.utils import timezone

from listening.models import Pair, Rater, Trial, Vote
from tests import factories
from tests.e2e.test_browser import answer, answer_that_does_not_arrive, begin, chromium, hear, page

__all__ = ["chromium", "page"]
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
READY = "[data-role=play-left]:not([disabled])"
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()


def axe(page):
    """What axe-core finds against WCAG 2.2 AA on the page as it stands."""
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run(document, {preload: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
    return [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found["violations"]]


def small_targets(page):
    """Buttons, fields and links of their own that are smaller than 44 px either way."""
    return page.evaluate(
        """() => [...document.querySelectorAll('button, input:not([type=hidden]), select, a.button, summary')].filter((e) => e.offsetParent &&
        !e.closest('label') && !e.matches('.word')).filter((e) => { const r = e.getBoundingClientRect(); return r.height < 43.5 || r.width < 43.5; })
        .map((e) => e.outerHTML.slice(0, 100))"""
    )


def checked(page, name):
    assert axe(page) == [], name
    assert small_targets(page) == [], name
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), name


@pytest.mark.parametrize("language", ["en", "hi", "ja"])
def test_every_page_is_accessible_in_every_language(page, live_server, django_user_model, language):
    study = factories.study(pairs=2, votes_per_pair=2)
    study.panel.sample = factories.clip(600)
    study.panel.save()
    base = live_server.url
    page.context.add_cookies([{"name": "listener_language", "value": language, "domain": "localhost", "path": "/listen/"}])
    link = f"{base}/listen/go/{factories.invitation().token}/"
    page.goto(f"{base}/listen/")
    checked(page, "stranger")
    page.problems.clear()  # Chromium logs the refusal of a page as a problem of it
    page.goto(link + "?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
    checked(page, "preview")
    page.goto(link)
    assert page.get_attribute("html", "lang") == language
    checked(page, "welcome")
    for name in ("adult", "native", "agree"):
        page.check(f"input[name={name}][value=yes]")
    page.click("main button.primary")
    page.wait_for_selector("#done")
    page.click("#tones summary")
    checked(page, "check")
    page.click("#hear")
    page.wait_for_selector("#done:not([disabled])")
    from tests.listening.test_passage import words

    words([django_user_model.objects.create_user(n) for n in "ab"])
    page.click("#done")
    page.wait_for_url("**/words/")
    checked(page, "words")
    for field in page.query_selector_all("fieldset"):
        [label] = [x for x in field.query_selector_all("label") if "said" in x.inner_text()]
        label.click()
    page.click("main button.primary")
    page.wait_for_selector("#begin:not([disabled])")
    checked(page, "ready")
    page.click("#begin")
    page.wait_for_selector(READY)
    checked(page, "trial")
    hear(page)
    page.keyboard.press("ArrowLeft")
    checked(page, "answered")
    page.click("[data-role=whole]")
    checked(page, "remark")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    checked(page, "keys")
    page.keyboard.press("Escape")
    page.goto(f"{base}/listen/erase/")
    checked(page, "erase")
    assert page.problems == []


def test_practice_says_what_was_right_and_then_the_test_begins(page, live_server):
    study = factories.study(pairs=2, votes_per_pair=2)
    factories.controls(study, 4)
    begin_at(page, live_server, study)
    assert page.is_visible("[data-role=practice]")
    hear(page)
    damaged = Trial.objects.get(state="open").tested_side
    page.keyboard.press(("ArrowLeft", "ArrowRight")[damaged])  # the damaged one
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[data-role=hint]').textContent.includes('damaged on purpose')")
    assert page.inner_text("[data-role=hint]").startswith("Listen for this")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-role=practice]", state="hidden")
    page.wait_for_selector(READY)
    assert "the real test begins" in page.inner_text("[data-role=hint]")
    assert Rater.objects.get().practised_at and page.problems == []


def begin_at(page, live_server, study):
    """To the first trial of a study that is there already."""
    page.goto(f"{live_server.url}/listen/go/{factories.invitation().token}/")
    for name in ("adult", "native", "agree"):
        page.check(f"input[name={name}][value=yes]")
    page.click("main button.primary")
    page.wait_for_selector("#done")
    if page.is_visible("#hear"):
        page.click("#hear")
    page.wait_for_selector("#done:not([disabled])")
    page.click("#done")
    page.wait_for_selector("#begin:not([disabled])")
    page.click("#begin")
    page.wait_for_selector(READY)
    return study


def test_strength_and_remarks_on_a_word_are_sent_with_the_vote(page, live_server):
    begin(page, live_server.url)
    hear(page)
    assert page.query_selector(".word") is None  # before the answer there is nothing to tap
    page.keyboard.press("ArrowLeft")
    page.click("[data-role=clearly]")
    sentence = page.inner_text("[data-role=sentence]")
    page.click(".word >> nth=1")
    page.click("#remark .chips button >> nth=0")
    page.click("#remark form button")
    page.click("[data-role=whole]")
    page.click("#remark .sides button >> nth=0")
    page.click("#remark .chips button:has-text('robotic')")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelectorAll('[data-role=marks] button').length === 2")
    assert page.inner_text("[data-role=sentence]") == sentence
    page.focus("[data-role=next]")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[data-role=count]').textContent.startsWith('2')")
    vote = Vote.objects.get()
    word = sentence.split()[1]
    start = sentence.index(word)
    assert (vote.choice, vote.strength) == ("left", "clearly")
    assert vote.tags == [
        {"side": "right", "word": [start, start + len(word)], "tag": "mispronounced"}, {"side": "left", "word": None, "tag": "robotic"},
    ]  # fmt: skip


def test_the_last_answer_is_taken_back_by_a_key(page, live_server):
    begin(page, live_server.url)
    hear(page)
    first = page.inner_text("[data-role=sentence]")
    answer(page, "ArrowLeft")
    page.wait_for_selector(READY)
    page.keyboard.press("z")
    page.wait_for_function("old => document.querySelector('[data-role=sentence]').textContent === old", arg=first)
    page.wait_for_selector(READY)
    assert "taken back" in page.inner_text("[data-role=hint]")
    hear(page)
    answer(page, "ArrowRight")
    page.wait_for_selector(READY)
    assert [v.choice for v in Vote.objects.filter(superseded_at=None)] == ["right"] and Vote.objects.count() == 2


def test_the_next_trial_starts_without_waiting_and_a_network_lost_for_five_minutes_is_sat_out(page, live_server):
    page.clock.install()
    fetched = []
    page.on("requestfinished", lambda request: fetched.append(request.url) if "/listen/sound/" in request.url else None)
    begin(page, live_server.url)
    while len(fetched) < 4:  # both sides of this one and of the next
        page.wait_for_timeout(50)
    hear(page)
    page.context.set_offline(True)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[data-role=outbox]').textContent.includes('waiting')")
    for _ in range(20):
        page.clock.fast_forward(15_000)
        page.wait_for_timeout(50)
    assert Vote.objects.count() == 0 and "waiting" in page.inner_text("[data-role=outbox]")
    page.context.set_offline(False)
    page.clock.fast_forward(15_000)
    page.wait_for_function("() => document.querySelector('[data-role=count]').textContent.startsWith('2')", timeout=30000)
    assert Vote.objects.count() == 1
    for key in ("ArrowDown", "ArrowRight"):
        page.wait_for_selector(READY)
        hear(page)
        answer(page, key)
    page.wait_for_url("**/thanks/")
    assert sorted(Vote.objects.values_list("choice", flat=True)) == ["left", "right", "same"]


def test_after_a_sitting_there_is_a_break_and_it_is_not_lost_by_a_reload(page, live_server, monkeypatch):
    for place in ("listening.allocate.SITTING", "listening.views.SITTING"):
        monkeypatch.setattr(place, 2)
    begin(page, live_server.url)
    for key in ("ArrowLeft", "ArrowDown"):
        page.wait_for_selector(READY)
        hear(page)
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('[data-role=next]').disabled")
    page.wait_for_selector("#rest", state="visible")
    page.reload()
    page.click("#begin")
    page.wait_for_selector("#rest", state="visible")
    assert axe(page) == []
    page.click("#rest button")
    page.wait_for_selector(READY)
    assert Rater.objects.get().breaks == 1 and Vote.objects.count() == 2


def test_sound_that_can_not_be_loaded_is_given_back_and_another_comes(page, live_server):
    study = factories.study(pairs=3, votes_per_pair=1)
    broken = []

    def spoil(route):
        key = route.request.url.rsplit("/", 1)[1]
        trial = Trial.objects.filter(left_key=key).first() or Trial.objects.get(right_key=key)
        broken.append(trial.pair_id) if not broken else None
        if trial.pair_id == broken[0]:
            route.fulfill(status=200, body=b"no sound", content_type="audio/wav")
        else:
            route.continue_()

    page.route("**/listen/sound/*", spoil)
    begin_at(page, live_server, study)
    page.wait_for_selector(READY)
    lost = Trial.objects.get(pair=broken[0])
    assert (lost.state, lost.undeliverable) == ("lapsed", 1) and Vote.objects.count() == 0
    assert Trial.objects.get(state="open").pair_id != broken[0]


def test_two_people_at_one_browser_each_send_their_own_answers(page, live_server):
    begin(page, live_server.url)
    first = Rater.objects.get()
    hear(page)
    answer_that_does_not_arrive(page)
    page.goto("about:blank")
    mine = page.context.cookies(live_server.url + "/listen/")
    page.context.clear_cookies()
    begin_at(page, live_server, None)
    hear(page)
    answer(page, "ArrowRight")
    assert [v.trial.rater_id for v in Vote.objects.all()] == [Rater.objects.exclude(pk=first.pk).get().pk]
    page.goto("about:blank")
    page.context.clear_cookies()
    page.context.add_cookies(mine)
    page.goto(f"{live_server.url}/listen/test/")
    page.click("#begin")
    page.wait_for_function("() => document.querySelector('[data-role=count]').textContent.startsWith('2')")
    assert Vote.objects.get(trial__rater=first).choice == "left"


def test_sound_that_never_arrives_ends_in_a_sentence(page, live_server):
    begin(page, live_server.url)
    page.wait_for_function("() => performance.getEntriesByType('resource').filter((e) => e.name.includes('/listen/sound/')).length >= 4")
    Trial.objects.update(undeliverable=1, state="lapsed")
    for k in range(6):
        pair = Pair.objects.create(
            study=Pair.objects.first().study, sentence=factories.sentence(f"Sentence number {k}."), reference=factories.clip(100 + k),
            tested=factories.clip(400 + k), first_side=0,
        )  # fmt: skip
        Trial.objects.create(
            pair=pair, rater=Rater.objects.get(), slot=0, tested_side=0, state="lapsed", undeliverable=1, lease_until=timezone.now()
        )
    page.reload()
    page.click("#begin")
    page.wait_for_selector("#trouble", state="visible")
    checked(page, "trouble")
    page.click("#trouble button")
    page.wait_for_selector("#begin:not([disabled])")


def test_another_device_is_offered_a_link(page, live_server):
    begin(page, live_server.url)
    page.click("#show-link")
    page.wait_for_selector("#link", state="visible")
    assert "/listen/on/" in page.input_value("#own-link") and axe(page) == []


def test_text_may_be_twice_as_large_and_run_from_right_to_left(page, live_server):
    study = factories.study(pairs=1)
    Pair.objects.update(sentence=factories.sentence("Quite a long sentence that has to be broken over several lines of a phone."))
    begin_at(page, live_server, study)
    page.evaluate("() => { document.documentElement.style.fontSize = '32px'; }")
    page.evaluate("() => { document.querySelector('[data-role=sentence]').dir = 'rtl'; }")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    hear(page)
    answer(page, "ArrowDown")


def test_hasty_presses_break_nothing(page, live_server):
    begin(page, live_server.url)
    for key in "121s2s1s12 2 1s" * 4:
        page.keyboard.press(" " if key == " " else key)
    page.keyboard.press("1")
    page.wait_for_function("() => !document.querySelector('.player.playing')")
    hear(page)
    answer(page, "ArrowDown")
    assert page.problems == [] and Vote.objects.get().log["plays"]["left"] > 10
