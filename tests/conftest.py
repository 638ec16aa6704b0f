"""Puts this folder on the import path, so that tests in subfolders share `helpers`; property tests repeat exactly."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("imapce", deadline=None, derandomize=True, max_examples=15, database=None)
settings.load_profile("imapce")
