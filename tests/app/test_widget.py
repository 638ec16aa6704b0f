"""The widget of a notebook: the same modules as the page in one text, the same session behind a comm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conversation import groups

pytest.importorskip("anywidget")

from imapce import Exploration
from imapce.app.widget import MODULES, STATIC, Explorer, one_module
from imapce.plotting.reports.page import SCRIPTS, SHARED

PAGE_BYTES = 125_000
LONGEST_FILE = 400


def test_every_module_of_the_instrument_is_joined_after_those_it_imports() -> None:
    page_only = {"main", "start"}
    assert set(MODULES) == {path.stem for path in STATIC.glob("*.js")} - page_only | set(SHARED)
    assert {path.stem for path in SCRIPTS.glob("*.js")} - set(SHARED) == {"report"}
    for place, name in enumerate(MODULES):
        imported = re.findall(
            r'from "\./(\w+)\.js"', ((SCRIPTS if name in SHARED else STATIC) / f"{name}.js").read_text()
        )
        assert set(imported) <= set(MODULES[:place]), name


def test_no_name_is_declared_twice_in_the_joined_module() -> None:
    declared = re.findall(r"^(?:function|class|const|let|async function) (\w+)", one_module(), re.MULTILINE)
    assert sorted(declared) == sorted(set(declared))
    assert one_module().count("export ") == 1


def test_the_page_is_small_and_asks_nobody_else() -> None:
    files = [*STATIC.iterdir(), *(SCRIPTS / f"{name}.js" for name in SHARED)]
    assert sum(path.stat().st_size for path in files) <= PAGE_BYTES
    for path in files:
        text = path.read_text()
        assert len(text.splitlines()) <= LONGEST_FILE, path.name
        addresses = set(re.findall(r"https?://[\w./]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name


def test_a_message_steers_the_exploration_itself() -> None:
    exploration = Exploration(groups(), random_state=0)
    explorer = exploration.app(table=pd.DataFrame({"kind": np.arange(300) % 3}), color="kind")
    told: list[tuple[Any, Any]] = []
    explorer.send = lambda content, buffers=None: told.append((content, buffers))
    explorer._heard(explorer, {"type": "hello", "id": 1}, [])
    assert told[-1][0]["re"] == 1
    assert next(content for content, _ in told if content["type"] == "view")["colours"]["by"] == "column:kind"
    explorer._heard(explorer, {"type": "take", "what": "most", "id": 2}, [])
    assert explorer.conversation.wait(60)
    assert len(exploration.steps) == 1
    assert all(isinstance(one, bytes) for _, buffers in told for one in buffers)


def test_a_saved_notebook_shows_a_picture() -> None:
    explorer = Explorer(Exploration(groups(60), random_state=0))
    bundle = explorer._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["image/png"].startswith("iVBOR")
    assert "application/vnd.jupyter.widget-view+json" in data


def test_the_static_files_are_in_the_package() -> None:
    assert {"index.html", "app.js", "app.css", "main.js", "icon.svg"} <= {path.name for path in Path(STATIC).iterdir()}
