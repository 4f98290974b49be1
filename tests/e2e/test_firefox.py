"""The rater's way in Firefox: the same tests, another engine of sound, of storage and of the network."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.e2e.test_browser import (
    launched,
    phone,
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
    found = shutil.which("firefox-esr") or shutil.which("firefox")
    if not found:
        pytest.skip("no Firefox is installed")
    options = {"channel": "moz-firefox", "executable_path": found, "env": os.environ | {"PULSE_SERVER": sound_card}}
    with launched("Firefox", lambda playwright: playwright.firefox.launch(**options)) as browser:
        yield browser


@pytest.fixture
def page(firefox):
    with phone(firefox) as page:
        yield page
