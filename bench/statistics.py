"""Speed of the intervals beside the library ways, in one run: ratios (above 1: ours is faster).

python -m bench.statistics        needs scipy; statsmodels for the clustered fit (`pip install statsmodels`), else that row is left out
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np

from gate.statistics.intervals import mean_interval
from gate.statistics.votes import net_preference


def best(work: Callable[[], object], least_s: float = 1.0) -> float:
    """Wall seconds of one call: the least of five runs."""
    work()
    found = []
    for _ in range(5):
        begin, calls = time.perf_counter(), 0
        while time.perf_counter() - begin < least_s / 5 or not calls:
            work()
            calls += 1
        found.append((time.perf_counter() - begin) / calls)
    return min(found)


def main() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    d = np.where(rng.random(300) < 0.02, 0.9, 0.0) + rng.normal(0, 0.05, 300)
    ours = best(lambda: mean_interval(d))
    theirs = best(lambda: stats.bootstrap((d,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(0)))
    print(f"mean_interval, n = 300             {1000 * ours:9.4f} ms")
    print(f"scipy.stats.bootstrap, BCa, 9,999  {1000 * theirs:9.1f} ms   {theirs / ours:8.0f} x")

    n, raters, sentences = 1_000_000, 400, 5000
    r, s = rng.integers(0, raters, n), rng.integers(0, sentences, n)
    y = rng.choice([-1, 0, 1], n, p=[0.3, 0.35, 0.35])
    ours = best(lambda: net_preference(r, s, y))

    def plain() -> float:
        """The variance's three sums alone, codes given."""
        e = y - y.mean()
        cells = r * sentences + s
        return float((np.bincount(r, e) ** 2).sum() + (np.bincount(s, e) ** 2).sum() - (np.bincount(cells, e) ** 2).sum()) / n**2

    bare = best(plain)
    print(f"net_preference, 10^6 votes         {1000 * ours:9.1f} ms")
    print(f"the same sums in plain NumPy       {1000 * bare:9.1f} ms   {bare / ours:8.2f} x")
    if importlib.util.find_spec("statsmodels"):
        import statsmodels.api as sm

        groups = np.stack([r, s], axis=1)
        fit = best(lambda: sm.OLS(y, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": groups}).bse, 0.2)
        print(f"statsmodels, two-way clustered     {1000 * fit:9.1f} ms   {fit / ours:8.1f} x")
    else:
        print("statsmodels is not installed: its row is left out")


if __name__ == "__main__":
    main()
