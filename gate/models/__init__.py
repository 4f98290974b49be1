"""Rows of the gate."""

from gate.models.access import Tending, Token
from gate.models.append_only import AppendOnly
from gate.models.ledger import LedgerEntry
from gate.models.levers import AuditEntry, Corpus, Draw, Lever, Look, Plan, Use, Verdict
from gate.models.measurements import Battery, Canary, Comparison, Judgement, Measurement, Scorer, ScoringBatch
from gate.models.policies import Policy

__all__ = [
    "AppendOnly", "AuditEntry", "Battery", "Canary", "Comparison", "Corpus", "Draw", "Judgement", "LedgerEntry", "Lever", "Look",
    "Measurement", "Plan", "Policy", "Scorer", "ScoringBatch", "Tending", "Token", "Use", "Verdict",
]  # fmt: skip
