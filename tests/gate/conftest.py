"""Fixtures of the deciding side's tests."""

import pytest

from tests.gate import flow


@pytest.fixture
def known_metrics(monkeypatch):
    """Metrics with a name and no models: for tests of what is done with scores."""
    monkeypatch.setattr("gate.metrics.battery.identity", lambda *recognisers: "test-metrics")
    monkeypatch.setattr("gate.recognisers.identity", lambda name, models: name)


@pytest.fixture
def mac(db, tmp_path):
    """A worker of the device class `test`."""
    bench = flow.bench(tmp_path)
    yield bench
    bench.close()
