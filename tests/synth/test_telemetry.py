"""What is noted of the machine beside a timed pass: macmon in both of its formats, memory that grows, and a pass that says it all."""

import json
import stat

import pytest

from synth import telemetry, timed

OLD = {
    "timestamp": "2026-01-01T00:00:00Z", "gpu_usage": [1497, 0.89], "gpu_power": 8.6, "all_power": 30.0, "sys_power": 41.6,
    "temp": {"cpu_temp_avg": 60.0, "gpu_temp_avg": 75.4}, "memory": {"swap_usage": 1048576},
}  # fmt: skip
NEW = {"gpu_freq_mhz": 1521, "gpu_active_ratio": 0.88, "gpu_scaled_ratio": 0.8, "gpu_power": 9.0, "temp": {"gpu_temp_avg": 71.6}}


def test_both_formats_are_read_and_what_is_missing_is_missing():
    assert telemetry.reading(OLD) == {
        "gpu_busy": 0.89, "gpu_mhz": 1497.0, "gpu_w": 8.6, "all_w": 30.0, "gpu_c": 75.4, "cpu_c": 60.0, "swap_bytes": 1048576.0,
    }  # fmt: skip
    assert telemetry.reading(NEW) == {"gpu_busy": 0.88, "gpu_mhz": 1521.0, "gpu_w": 9.0, "gpu_c": 71.6}
    found = telemetry.summary([telemetry.reading(OLD), telemetry.reading(NEW)])
    assert found["samples"] == 2 and found["gpu_c"] == {"mean": 73.5, "most": 75.4} and found["all_w"] == {"mean": 30.0, "most": 30.0}


def test_macmon_runs_only_where_it_is_asked_for(tmp_path, monkeypatch):
    program = tmp_path / "macmon"
    lines = "\n".join(f"echo '{json.dumps(x)}'" for x in (OLD, NEW))
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo macmon 0.7.1; exit; fi\necho []\necho cut sho\n{lines}\nexec sleep 60\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    unasked = telemetry.Macmon()
    unasked.start()
    assert unasked.end() == {}
    monkeypatch.setenv("EARWITNESS_MACMON", "1")
    asked = telemetry.Macmon()
    asked.start()
    while len(asked.readings) < 2:
        assert asked.process.poll() is None
    found = asked.end()
    assert found["macmon"] == "macmon 0.7.1" and found["samples"] == 2 and asked.process.poll() is not None


def test_a_monitor_that_will_not_run_costs_no_pass(tmp_path, monkeypatch):
    program = tmp_path / "macmon"
    program.write_text("no program at all")
    program.chmod(0o755)
    monkeypatch.setenv("EARWITNESS_MACMON", "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    broken = telemetry.Macmon()
    broken.start()
    assert broken.end() == {}


@pytest.mark.parametrize(("held", "expected"), [([1, 2, 3, 4], 1.0), ([5, 5, 5], 0.0), ([1, 2], None), ([1, None, 3, 4], None)])
def test_memory_that_grows_from_clip_to_clip(held, expected):
    assert timed.slope(held) == expected


@pytest.mark.slow
@pytest.mark.parametrize("batching", [None, {"size": 2, "sort": "length"}])
def test_a_pass_says_what_it_took_and_what_was_around(tiny, spoken, tmp_path, batching):
    body = tiny | ({"batching": batching} if batching else {})
    _, child = spoken(body)
    texts = ["The ferry leaves early.", "Nobody waved.", "It rained.", "The harbour was empty."]
    sentences = [{"sentence": str(k), "text": text, "language": "en", "seed": k + 1} for k, text in enumerate(texts)]
    done = timed.run(child, body, sentences, tmp_path)
    figures = done["figures"]
    assert {c["sentence"] for c in done["clips"]} == {"0", "1", "2", "3"} and figures["calls"] == (2 if batching else 4)
    assert figures["total_wall_s"] > 0 and figures["first_s"] > 0 and figures["warm_s"] > 0 and figures["load_s"] > 0
    assert all(c["peak_memory_bytes"] > 0 and c["held_memory_bytes"] > 0 for c in done["clips"])
    if batching:
        assert 0 < figures["useful_share"] <= 1 and figures["total_wall_s"] < sum(c["wall_s"] for c in done["clips"]) * 1.01
    else:
        assert figures["total_wall_s"] == pytest.approx(sum(c["wall_s"] for c in done["clips"]))
