"""Debian's Chromium through Playwright, or a reason why not."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest


def chromium_or_skip() -> tuple[str, Any]:
    """The path of Chromium and Playwright's entry point; REQUIRE_BROWSER=1 turns the skip into a failure."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if chromium is None or sync_playwright is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER=1, but chromium or playwright is not installed")
        pytest.skip("chromium or playwright is not installed")
    return chromium, sync_playwright
