"""The rater's pages and the dashboard in a real browser."""

import os
import re
from contextlib import contextmanager
from functools import partial

import pytest
from playwright.sync_api import sync_playwright

from listening.models import Trial, Vote
from tests import factories

CHROMIUM = "/usr/bin/chromium"
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@contextmanager
def launched(name, launch):
    """A browser for a module's tests; one that can't be started skips them, and says why."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's loop runs beside the tests' database calls
    with sync_playwright() as playwright:
        try:
            browser = launch(playwright)
        except Exception as error:  # noqa: BLE001 - whatever keeps the browser from starting is the reason
            pytest.skip(f"no {name} can be started: {str(error).splitlines()[0]}")
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@contextmanager
def phone(browser):
    """A page of a phone's size that keeps its scripts' errors."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    context.close()


@pytest.fixture(scope="module")
def chromium():
    options = {"executable_path": CHROMIUM} if os.access(CHROMIUM, os.X_OK) else {}
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--autoplay-policy=user-gesture-required"]
    with launched("Chromium", lambda playwright: playwright.chromium.launch(args=arguments, **options)) as browser:
        yield browser


@pytest.fixture
def page(chromium):
    with phone(chromium) as page:
        page.on("console", lambda message: page.problems.append(message.text))
        yield page


def begin(page, base):
    """From the invitation to the first trial, by keyboard alone."""
    study = factories.study(pairs=3, votes_per_pair=2)
    study.panel.sample = factories.clip(600)
    study.panel.save()
    page.goto(f"{base}/listen/go/{factories.invitation().token}/")
    for choice in ("adult", "native"):
        page.focus(f"input[name={choice}][value=yes]")
        page.keyboard.press("Space")
    page.focus("input[name=agree]")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#hear:not([disabled])")
    page.focus("#hear")
    page.keyboard.press("Enter")
    page.wait_for_selector("#done:not([disabled])")
    page.focus("#done")
    page.keyboard.press("Enter")
    page.wait_for_selector("#begin:not([disabled])")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-role=play-left]:not([disabled])")
    return study


def hear(page, *keys):
    for key in keys or ("1", "2"):
        page.keyboard.press(key)
        name = {"1": "left", "2": "right"}[key]
        page.wait_for_function(
            """(name) => !document.querySelector('.player.playing') &&
            document.querySelector(`[data-role=play-${name}]`).getAttribute('aria-label').includes(',')""",
            arg=name,
        )


def answer(page, key="ArrowDown"):
    before = page.inner_text("[data-role=count]")
    page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "old => location.pathname.includes('thanks') || document.querySelector('[data-role=count]').textContent !== old", arg=before
    )


def test_a_whole_sitting_by_keyboard_on_a_small_screen(page, live_server):
    begin(page, live_server.url)
    assert page.evaluate("() => document.documentElement.scrollWidth <= 360")
    assert page.get_attribute("[data-role=sentence]", "lang") == "en"
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight"):
        page.wait_for_selector("[data-role=play-left]:not([disabled])")
        assert page.is_disabled("[data-role=answer-same]")
        hear(page)
        answer(page, key)
    page.wait_for_url("**/thanks/")
    assert "your answers to 3 comparisons" in page.inner_text("main")
    assert sorted(Vote.objects.values_list("choice", flat=True)) == ["left", "right", "same"]
    vote = Vote.objects.order_by("cast_at").first()
    log = vote.log
    assert log["plays"] == {"left": 1, "right": 1} and log["first"] == "left" and min(log["share"].values()) > 0.9
    assert vote.doubt == "" and min(log["frames"].values()) > 0.9 * 24000 and log["tail"] == {"left": True, "right": True}
    assert page.problems == []


def fulfil(body, kind, route):
    route.fulfill(body=body, content_type=kind)


def test_the_joined_script_and_style_of_a_deployed_site_are_the_same_page(page, live_server):
    from config import storage

    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name, kind in zip(storage.JOINED, ("text/javascript", "text/css"), strict=True):
        page.route(f"**/static/{name}", partial(fulfil, storage.joined(name), kind))
    begin(page, live_server.url)
    hear(page)
    answer(page, "ArrowLeft")
    assert Vote.objects.count() == 1 and page.problems == []
    assert not [url for url in asked if url.endswith(("net.js", "player.js", "base.css"))]
    assert page.evaluate("() => getComputedStyle(document.querySelector('main')).maxWidth") == "640px"


def test_answers_stay_locked_until_both_were_heard_to_the_end(page, live_server):
    begin(page, live_server.url)
    hear(page, "1")
    assert page.is_disabled("[data-role=answer-left]")
    page.keyboard.press("2")
    page.wait_for_selector(".player.playing")
    page.keyboard.press("2")  # stopped half way
    page.wait_for_selector(".player.playing", state="detached")
    assert page.is_disabled("[data-role=answer-left]")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert Vote.objects.count() == 0
    hear(page, "2")
    assert page.is_enabled("[data-role=answer-left]")


def test_a_reload_resumes_the_same_trial_with_the_same_sides(page, live_server):
    begin(page, live_server.url)
    hear(page)
    answer(page)
    page.wait_for_selector("[data-role=play-left]:not([disabled])")
    for _ in range(100):  # what was fetched ahead is shown at once; the server is asked meanwhile whether it agrees
        if Trial.objects.filter(state="open").exists():
            break
        page.wait_for_timeout(50)
    sentence = page.inner_text("[data-role=sentence]")
    sides = list(Trial.objects.filter(state="open").values_list("pk", "tested_side"))
    page.reload()
    assert page.is_visible("#veil")  # no sound without a gesture, never a silent trial
    page.click("#begin")
    page.wait_for_selector("[data-role=play-left]:not([disabled])")
    assert page.inner_text("[data-role=sentence]") == sentence
    assert list(Trial.objects.filter(state="open").values_list("pk", "tested_side")) == sides


def test_a_double_click_on_next_is_one_vote(page, live_server):
    begin(page, live_server.url)
    hear(page)
    page.keyboard.press("ArrowDown")
    page.dblclick("[data-role=next]")
    page.wait_for_function("() => document.querySelector('[data-role=count]').textContent.startsWith('2')")
    page.wait_for_selector("[data-role=play-left]:not([disabled])")
    assert Vote.objects.count() == 1


def test_a_vote_without_a_network_waits_and_is_sent_once(page, live_server):
    begin(page, live_server.url)
    hear(page)
    page.context.set_offline(True)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[data-role=outbox]').textContent.includes('waiting')")
    assert page.inner_text("[data-role=count]") == "1 of 3" and Vote.objects.count() == 0
    page.context.set_offline(False)
    page.wait_for_function("() => document.querySelector('[data-role=count]').textContent.startsWith('2')", timeout=20000)
    assert [v.choice for v in Vote.objects.all()] == ["right"]
    assert page.inner_text("[data-role=outbox]") == ""


def answer_that_does_not_arrive(page):
    page.route("**/listen/vote", lambda route: route.abort())
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[data-role=outbox]').textContent.includes('waiting')")
    page.unroute("**/listen/vote")


def test_a_vote_kept_over_a_closed_page_is_sent_by_the_next(page, live_server):
    begin(page, live_server.url)
    hear(page)
    answer_that_does_not_arrive(page)
    page.reload()
    page.click("#begin")
    page.wait_for_function("() => document.querySelector('[data-role=count]').textContent.startsWith('2')")
    assert [v.choice for v in Vote.objects.all()] == ["left"]


def test_keys_are_shown_on_request_and_do_nothing_meanwhile(page, live_server):
    begin(page, live_server.url)
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("1")
    assert page.query_selector(".player.playing") is None
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")


def test_without_web_audio_the_page_says_what_is_needed(chromium, live_server):
    factories.study()
    context = chromium.new_context()
    context.add_init_script("delete window.AudioContext")
    page = context.new_page()
    page.goto(f"{live_server.url}/listen/go/{factories.invitation().token}/")
    for name in ("adult", "native", "agree"):
        page.check(f"input[name={name}][value=yes]")
    page.click("button.primary")
    page.wait_for_selector("#done:not([disabled])")
    page.click("#done")
    page.wait_for_selector("#needs")
    assert page.is_visible("#needs") and page.is_hidden("#begin")
    context.close()


RENDER = """async ([url]) => {
  const { Player } = await import(url);
  const rate = 24000, seconds = 2;
  const offline = new OfflineAudioContext(1, rate * 3, rate);
  let now = 0;  // everything is scheduled by absolute times, so the presses can all come before the rendering; Firefox can't suspend one
  const shown = { state: () => "running", currentTime: () => now };
  const seen = new Proxy(offline, { get: (target, name) => shown[name] ? shown[name]() : typeof target[name] === "function" ? target[name].bind(target) : target[name] });
  const player = new Player(seen, () => undefined);
  const data = {}, buffers = {};
  for (const [side, hertz] of [["left", 220], ["right", 330]]) {
    const buffer = offline.createBuffer(1, rate * seconds, rate);
    data[side] = Float32Array.from({ length: rate * seconds }, (_, i) => Math.fround(0.5 * Math.sin(2 * Math.PI * (hertz + 20 * i / rate) * i / rate)));
    buffer.copyToChannel(data[side], 0);
    buffers[side] = buffer;
  }
  player.take(buffers);
  player.play("left");
  now = 0.512;
  player.switch();
  now = 2.6;
  player.mark();
  const rendered = (await offline.startRendering()).getChannelData(0);
  return { rendered: Array.from(rendered), left: Array.from(data.left), right: Array.from(data.right), heard: [player.share("left"), player.share("right")] };
}"""


def test_switching_is_exact_to_the_sample_and_without_a_jump(page, live_server):
    begin(page, live_server.url)
    source = re.search(r'src="([^"]*trial[^"]*\.js)"', page.content())[1]
    found = page.evaluate(RENDER, [source.replace("trial", "player")])
    out, left, right = found["rendered"], found["left"], found["right"]

    def offset(samples, window):
        """Where in the recording this window was taken from; every sample must be the recording's own."""
        first = out[window[0] : window[1]]
        for start in range(len(samples) - len(first)):
            if abs(samples[start] - first[0]) < 1e-6 and all(
                abs(a - b) < 1e-6 for a, b in zip(samples[start : start + len(first)], first, strict=True)
            ):
                return start
        return None

    a, b = offset(left, (4800, 9600)), offset(right, (16800, 24000))
    assert a is not None and b is not None
    # Played from its start ten milliseconds after the call; the other goes on from the place it was switched at, after 5 ms of fade.
    assert abs(a - (4800 - 240)) <= 1
    switched = round(0.512 * 24000)
    assert abs((16800 - b) - (switched + 120 + 240 - (switched - 240))) <= 256
    jumps = max(abs(x - y) for x, y in zip(out, out[1:], strict=False))
    assert jumps < 0.06  # the faster sweep, at most 410 Hz at 0.5, moves by 0.054 a sample
    assert max(abs(x) for x in out[-2000:]) == 0  # it ends at its end
    assert found["heard"] == pytest.approx([0.256, 0.744], abs=0.015)  # what was rendered of each, and no more


def test_the_dashboard_works_at_both_widths(chromium, live_server, engineer):
    factories.registered()
    for width in (360, 1280):
        context = chromium.new_context(viewport={"width": width, "height": 800})
        page = context.new_page()
        problems = []
        page.on("console", lambda message, seen=problems: seen.append(message.text))
        page.goto(f"{live_server.url}/login/")
        page.fill("#id_username", "alice")
        page.fill("#id_password", "a long enough secret")
        page.click("main button")
        for path in ("/", "/levers/louder/", "/levers/new", "/invitations/", "/machine/"):
            page.goto(live_server.url + path)
            assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), (width, path)
        page.goto(live_server.url + "/")
        page.wait_for_timeout(3500)  # one poll of the list
        assert page.is_visible("text=louder") and problems == []
        context.close()
