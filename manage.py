#!/usr/bin/env python3
"""Entry of every command: makes the environment if it is missing, then hands over to Django."""

import os
import sys

if sys.version_info < (3, 11):
    sys.exit(
        "Earwitness needs Python 3.11 or newer, this is %d.%d: start it with a newer one, such as `python3.12 manage.py up`."
        % sys.version_info[:2]
    )


def main():
    from config import bootstrap

    bootstrap.enter(sys.argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
