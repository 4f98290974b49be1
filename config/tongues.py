"""Languages of the rater's pages: one .po file each under locale/, compiled where this installation keeps its files."""

from __future__ import annotations

import os
from pathlib import Path


def found(source: Path) -> list[tuple[str, str]]:
    """(code, name in itself) of English and of every language that has a .po file; Django's names, or the code where it knows none."""
    from django.conf.locale import LANG_INFO

    codes = ["en", *sorted(p.parent.parent.name for p in source.glob("*/LC_MESSAGES/django.po"))]
    return [(code, LANG_INFO.get(code, {}).get("name_local", code)) for code in codes]


def compile_all(source: Path, target: Path) -> None:
    """Writes a .mo for every .po that is newer than its own. Several processes may do it at once: each file is whole or not there."""
    for po in source.glob("*/LC_MESSAGES/django.po"):
        mo = target / po.relative_to(source).with_suffix(".mo")
        if mo.exists() and mo.stat().st_mtime >= po.stat().st_mtime:
            continue
        from babel.messages.mofile import write_mo
        from babel.messages.pofile import read_po

        mo.parent.mkdir(parents=True, exist_ok=True)
        part = mo.with_name(f"{mo.name}.{os.getpid()}.part")
        with po.open("rb") as given, part.open("wb") as made:
            write_mo(made, read_po(given, locale=po.parent.parent.name))
        part.replace(mo)
