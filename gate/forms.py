"""The form to register a lever: the same spec as the file, checked by the same code."""

from __future__ import annotations

from django import forms

EXAMPLE = """lever: kokoro-4bit
title: Kokoro with 4-bit weights in its predictor
parent:
  name: kokoro
  model: {path: kokoro-82m}
  voice: {preset: jm_kumo}
change:
  quantisation:
    - {match: '^predictor\\.', bits: 4, group_size: 64}
sentences:
  language: en
  texts:
    - The ferry leaves at dawn from the north pier.
    - She kept every letter he had written to her.
plan:
  benefit: none
  listening: {required: false}
"""


class SpecForm(forms.Form):
    """`spec` is YAML, as in `manage.py register lever.yaml`."""

    spec = forms.CharField(
        label="The lever, as YAML", initial=EXAMPLE, widget=forms.Textarea(attrs={"rows": 26, "spellcheck": "false", "autocomplete": "off"})
    )
