"""Static files with content hashes in their names, ES module imports rewritten too."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticStorage(CompressedManifestStaticFilesStorage):
    support_js_module_import_aggregation = True

    def post_process(self, paths, dry_run=False, **options):
        """htmx's optional extensions are left out: they name modules that are not there, and no page uses them."""
        used = {name: place for name, place in paths.items() if not name.startswith(("django_htmx/ext/", "django_htmx/htmax"))}
        yield from super().post_process(used, dry_run, **options)
