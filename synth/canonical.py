"""One form of a mapping for hashing."""

from __future__ import annotations

import hashlib
import json


def canonical(body: dict) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(body: dict) -> str:
    """sha256, hex, of the canonical form (sorted keys, no spaces, UTF-8); names configurations, plans and evidence."""
    return hashlib.sha256(canonical(body).encode()).hexdigest()
