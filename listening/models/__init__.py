"""Rows of listening: who hears which pair, and what they answered. Knows sound, nothing of verdicts."""

from listening.models.panels import Pair, Panel, Study
from listening.models.raters import Consent, Exclusion, Invitation, Qualification, Rater, Word, token
from listening.models.trials import Trial, Vote

__all__ = ["Consent", "Exclusion", "Invitation", "Pair", "Panel", "Qualification", "Rater", "Study", "Trial", "Vote", "Word", "token"]
