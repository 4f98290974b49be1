"""The rater's way in Firefox: the same tests, another engine of sound, of storage and of the network."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.e2e.test_browser import (
    test_a_reload_resumes_the_same_trial_with_the_same_sides,
    test_a_vote_kept_over_a_closed_page_is_sent_by_the_next,
    test_a_whole_sitting_by_keyboard_on_a_small_screen,
    test_switching_is_exact_to_the_sample_and_without_a_jump,
)
from tests.e2e.test_sitting import test_hasty_presses_break_nothing, test_strength_and_remarks_on_a_word_are_sent_with_the_vote

__all__ = [
    "test_a_reload_resumes_the_same_trial_with_the_same_sides", "test_a_vote_kept_over_a_closed_page_is_sent_by_the_next",
    "test_a_whole_sitting_by_keyboard_on_a_small_screen", "test_hasty_presses_break_nothing",
    "test_strength_and_remarks_on_a_word_are_sent_with_the_vote", "test_switching_is_exact_to_the_sample_and_without_a_jump",
]  # fmt: skip
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def sound_card():
    """A sound server that plays to nowhere, in real time: without one Firefox's clock of sound stands still. Its address."""
    if not shutil.which("pulseaudio"):
        pytest.skip("Firefox needs a sound server: install pulseaudio")
    folder = Path(tempfile.mkdtemp(prefix="ew-"))
    socket = folder / "native"
    modules = ["-L", "module-null-sink", "-L", f"module-native-protocol-unix socket={socket} auth-anonymous=1"]
    server = subprocess.Popen(
        ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=yes", *modules],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"HOME": str(folder), "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder)},
    )  # fmt: skip
    yield f"unix:{socket}"
    server.terminate()
    server.wait()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def firefox(sound_card):
    import os

    found = shutil.which("firefox-esr") or shutil.which("firefox")
    if not found:
        pytest.skip("no Firefox is installed")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        try:
            browser = playwright.firefox.launch(channel="moz-firefox", executable_path=found, env=os.environ | {"PULSE_SERVER": sound_card})
        except Exception as error:  # noqa: BLE001 - whatever keeps the browser from starting is the reason
            pytest.skip(f"no Firefox can be started: {str(error).splitlines()[0]}")
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def page(firefox):
    context = firefox.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    context.close()
