"""Fixtures shared by all tests."""

import os

import pytest
from django.test import Client


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the long version of the simulations, instead of the quick one")


def pytest_collection_modifyitems(config, items):
    """The long simulations are run on demand. Under CI a skipped test is a failure: a green run must have run."""
    unwanted = [item for item in items if "long" in item.keywords and not config.getoption("--long")]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if item not in unwanted]
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.timeout(0))  # as long as it takes
    if os.environ.get("CI") != "true":
        return
    for item in items:
        for marker in item.iter_markers("skipif"):
            if any(marker.args):
                raise pytest.UsageError(f"{item.nodeid} would be skipped under CI: {marker.kwargs.get('reason')}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped under CI: {report.longrepr}"


@pytest.fixture
def engineer(db, django_user_model):
    return django_user_model.objects.create_user("alice", password="a long enough secret")  # noqa: S106


@pytest.fixture
def signed_in(engineer):
    client = Client()
    client.force_login(engineer)
    return client


@pytest.fixture(autouse=True)
def quiet_bell(request, monkeypatch):
    """No test rings for workers that aren't there; tests/synth/test_bell.py rings for real."""
    if "loud_bell" not in request.fixturenames:
        monkeypatch.setattr("synth.bell.publish", lambda task, times: None)


@pytest.fixture
def loud_bell():
    """The bell as it is."""
