"""The same page inside JupyterLab, with no network but this machine: look, take, lasso, undo."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from served import HOME, Watched, click, lasso, press, settled, taken

needed = ("jupyterlab", "ipykernel", "anywidget")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in needed),
    reason=f"one of {', '.join(needed)} is not installed",
)
CODE = """from imapce import Exploration
from imapce.datasets import load_digits
exploration = Exploration(load_digits().X, random_state=0)
exploration.app()"""


@contextmanager
def laboratory(folder: Path) -> Iterator[str]:
    """JupyterLab over a folder: the address of its page."""
    home = folder / "home"
    environment = {
        **os.environ,
        "PYTHONPATH": str(HOME),
        **{name: str(home / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")},
        **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
        "no_proxy": "127.0.0.1,localhost",
    }
    settings = [
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        "--port=0",
        "--LabApp.news_url=",
        "--ServerApp.token=key",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *settings],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        yield next(found[1] for line in process.stderr if (found := re.search(r"(http://127\.0\.0\.1:\d+)/lab", line)))
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


def test_the_first_steps_in_jupyterlab(somebody: Any, tmp_path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": CODE, "outputs": [], "execution_count": None, "id": "one"}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "explore.ipynb").write_text(json.dumps(notebook))
    with laboratory(tmp_path) as address:
        page = somebody().new_page()
        watched = Watched(address.removeprefix("http://"))
        page.on("request", lambda one: watched.asked(one.url))
        page.goto(f"{address}/lab/tree/explore.ipynb?token=key")
        # A cell that is run before its kernel is there is not run at all.
        page.get_by_text("| Idle").wait_for(timeout=90_000)
        page.locator(".jp-Notebook .jp-Cell").first.click()
        page.keyboard.press("Shift+Enter")
        settled(page)
        click(page, "Next view")
        click(page, "Take most distinct")
        assert taken(page).count() == 1
        lasso(page, [(0.0, 0.3), (0.98, 0.3), (0.98, 0.98), (0.0, 0.98)])
        assert page.locator(".why .trait").count() > 0
        page.locator(".imapce canvas.over").focus()
        press(page, "u")
        assert taken(page).count() == 0
        assert watched.strangers == []
