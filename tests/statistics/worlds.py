"""Invented studies whose truth is known, calibrated to published summaries (docs/statistics.md 1.1, 1.6 and 2.1)."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

HARD = (1.6, 15.0)  # Beta: how hard a sentence is to recognise


def _clips(rng, shape, body, zeros, factor, extra):
    cer = np.where(rng.random(shape) < zeros, 0.0, body * factor)
    cer = np.where(rng.random(shape) < 0.003, rng.uniform(0.5, 1.0, shape), cer)
    cer = np.where(rng.random(shape) < extra, 1.0, cer)
    return np.minimum(cer, 1.0)


def cer_differences(language, harm, studies, sentences, seeds, rng):
    """Per-sentence differences, shape (studies, sentences), of a candidate that is worse by exactly the margin on average.

    harm: `none`, `diffuse` (every clip somewhat worse) or `sparse` (about two clips in a hundred wholly wrong).
    """
    shape = (studies, sentences, seeds)
    factor = {"none": 1.0, "diffuse": {"hi": 1.22, "en": 1.54}[language], "sparse": 1.0}[harm]
    extra = {"none": 0.0, "diffuse": 0.0, "sparse": {"hi": 0.022, "en": 0.0203}[language]}[harm]
    hard = rng.beta(*HARD, (studies, sentences, 1))

    def arm(factor, extra):
        if language == "hi":
            return _clips(rng, shape, hard * rng.gamma(5, 0.2, shape), 0.05, factor, extra)
        return _clips(rng, shape, rng.gamma(1.5, 0.0987, shape), 0.75, factor, extra)

    return (arm(factor, extra) - arm(1.0, 0.0)).mean(axis=2)


def true_mean(language, harm, rng):
    """The truth of such a candidate, to three digits of the margin, from two million clips."""
    return float(cer_differences(language, harm, 20, 100_000, 1, rng).mean())


def dnsmos_differences(loss, studies, sentences, seeds, rng):
    """Losses of OVRL per sentence: a sentence-and-system effect of SD 0.10 and clip noise t5 of SD 0.14 an arm."""

    def arm():
        noise = rng.standard_t(5, (studies, sentences, seeds)) * 0.14 / math.sqrt(5 / 3)
        return (rng.normal(0, 0.10, (studies, sentences, 1)) + noise).mean(axis=2)

    return loss + arm() - arm()


def log_ratios(shift, spread, studies, sentences, rng):
    return math.log1p(shift) + rng.normal(0, spread, (studies, sentences)) - rng.normal(0, spread, (studies, sentences))


PANELS = {"none": (0.0, 0.0), "low": (0.2, 0.4), "sent-heavy": (0.2, 0.8), "rater-heavy": (0.6, 0.3), "both": (0.4, 0.6)}


def shift_for(preference, rater_sd, sentence_sd):
    """The latent shift that gives a net preference, once raters and sentences are averaged over."""
    total = math.sqrt(rater_sd**2 + sentence_sd**2 + 1)

    def excess(d):
        return float(ndtr((d - 0.5) / total) - ndtr((-d - 0.5) / total)) - preference

    return brentq(excess, -5, 5)


def votes(panel, raters, sentences, preference, rng, share=1.0):
    """(raters, sentences, scores) of one study: everyone hears `share` of the sentences, "same" within half a latent unit."""
    rater_sd, sentence_sd = PANELS[panel]
    shift = shift_for(preference, rater_sd, sentence_sd)
    r, s = np.divmod(np.arange(raters * sentences), sentences)
    if share < 1:
        keep = rng.random(len(r)) < share
        r, s = r[keep], s[keep]
    latent = shift + rng.normal(0, rater_sd, raters)[r] + rng.normal(0, sentence_sd, sentences)[s] + rng.normal(0, 1, len(r))
    return r, s, np.where(latent > 0.5, 1, np.where(latent < -0.5, -1, 0))


def blocks(speedup, number, drift, run_sd, rng, saturating=True):
    """(log wall means, arms, block numbers) of A-B-B-A blocks on a machine that warms up by `drift` over a block."""
    wall, arm, block = [], [], []
    for b in range(number):
        for place, which in enumerate((0, 1, 1, 0)):
            warm = drift * (1 - math.exp(-(4 * b + place) / 2)) if saturating else drift * (4 * b + place) / 4
            wall.append(warm - which * math.log(speedup) + rng.normal(0, run_sd))
            arm.append(which)
            block.append(b)
    return wall, arm, block
