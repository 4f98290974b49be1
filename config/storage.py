"""Static files with content hashes in their names. What one page needs is joined into one file, as each further one costs a round trip."""

import re
from collections.abc import Callable
from pathlib import Path

from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from whitenoise.storage import CompressedManifestStaticFilesStorage

#: Joined with what they import; to a browser in development they are modules of their own.
JOINED = ("js/listen/trial.js", "css/listen.css")
_IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "\./(\w+)\.js";\n', re.M)
_STYLE = re.compile(r'^@import url\("(\w+)\.css"\);\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.M)


def source(name: str) -> str:
    return Path(str(finders.find(name))).read_text(encoding="utf-8")


def joined(name: str, read: Callable[[str], str] = source) -> str:
    """The text of a script or style sheet with what it imports put before it. Each module keeps a scope of its own."""
    text, folder = read(name), name.rpartition("/")[0]
    if name.endswith(".css"):
        return _STYLE.sub(lambda found: read(f"{folder}/{found[1]}.css"), text)
    before = [_module(read(f"{folder}/{other}.js")) for other in _IMPORT.findall(text)]
    return "".join(before) + _IMPORT.sub("", text)


def _module(text: str) -> str:
    names = ", ".join(_EXPORT.findall(text))
    return f"const {{ {names} }} = (() => {{\n{_EXPORT.sub('', text)}return {{ {names} }};\n}})();\n"


class StaticStorage(CompressedManifestStaticFilesStorage):
    support_js_module_import_aggregation = True

    def post_process(self, paths, dry_run=False, **options):
        """htmx's optional extensions are left out: they name modules that are not there, and no page uses them."""
        used = {name: place for name, place in paths.items() if not name.startswith(("django_htmx/ext/", "django_htmx/htmax"))}
        for name in JOINED:
            if name in used and not dry_run:
                self.delete(name)
                self._save(name, ContentFile(joined(name).encode()))
                used[name] = (self, name)
        yield from super().post_process(used, dry_run, **options)
