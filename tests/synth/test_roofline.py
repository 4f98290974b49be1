"""Predictions against the published ones."""

import json
from pathlib import Path

import pytest

from synth import roofline

VECTORS = json.loads((Path(__file__).resolve().parent.parent / "vectors" / "roofline.json").read_text())
PRECISIONS = {"bf16": (16, 0), "q8 g64": (8, 64), "q4 g64": (4, 64), "q4 g32": (4, 32)}


@pytest.mark.parametrize("row", [r for r in VECTORS["rows"] if r["precision"] in PRECISIONS], ids=lambda r: r["precision"])
def test_bytes_and_times_of_the_published_table(row):
    bits = roofline.bits_per_weight(*PRECISIONS[row["precision"]])
    assert bits == row["bits_per_weight"]
    once, repeated = (VECTORS[name] * 1e6 * bits / 8 for name in ("talker_params_M", "codepred_params_M_per_pass"))
    traffic = roofline.Traffic(once, repeated, VECTORS["passes"], VECTORS["kv_GB"] * 1e9)
    assert traffic.frame / 1e9 == pytest.approx(row["GB_per_frame"], abs=5e-4)
    for share in (100, 69, 65):
        assert roofline.milliseconds(traffic.frame, 307, share / 100) == pytest.approx(row[f"ms_at_{share}"], abs=0.01)


def test_the_other_published_model():
    for row in (r for r in VECTORS["rows"] if "ms" in r):
        size, speed = (
            float(part.split()[0]) for part in row["precision"].replace("MisoTTS q4 ", "").replace("MisoTTS ", "").split(" GB @")
        )
        assert roofline.milliseconds(size * 1e9, speed) == pytest.approx(row["ms"], abs=0.05)


def test_a_chip_nobody_knows_gets_bytes_and_no_time():
    traffic = roofline.Traffic(1e9)
    assert roofline.predict(traffic, "Linux x86_64, AMD EPYC") == {"gb_per_frame": 1.0, "passes": 0}
    known = roofline.predict(traffic, "Darwin arm64, Apple M5 Pro")
    assert known["ms_per_frame"] == [4.72, 5.01] and known["gb_per_s"] == 307.0


@pytest.mark.slow
def test_a_loaded_models_own_shapes_are_counted(tiny, spoken):
    _, child = spoken(tiny)
    dense = child.report["notes"]["traffic"]
    _, child = spoken(tiny | {"quantisation": [{"match": "code_predictor.model.layers", "bits": 4, "group_size": 32}]})
    fewer = child.report["notes"]["traffic"]
    # Two layers of 64 wide: attention 4 x 16 heads with 2 of keys, a feed-forward of 128, all of float32.
    layer = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 128
    assert dense["passes"] == 15 and dense["repeated"] == pytest.approx(2 * layer * 4, rel=0.02)
    assert fewer["once"] == dense["once"] and fewer["repeated"] / dense["repeated"] == pytest.approx(6 / 32, rel=0.05)
