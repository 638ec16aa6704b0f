"""Every notebook of the gallery runs, shows a picture, prints little, and is kept without its outputs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat, of the development tools, is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient, of the development tools, is not installed")
pytest.importorskip("ipykernel", reason="ipykernel, of the development tools, is not installed")

FOLDER = Path(__file__).parents[1] / "examples"
BOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {"genes_with_a_nuisance_known": "anndata"}
MOST_CELLS = 12
MOST_TEXT = 2_000
# No test downloads: what is not on disk is not within reach, and the notebooks say what they do then.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def read(book: Path) -> Any:
    return nbformat.read(book, as_version=4)


def run(book: Path, folder: Path) -> Any:
    """The notebook with its outputs, run by this Python in a folder of its own."""
    ready = read(book)
    place = {"metadata": {"path": folder}}
    with mock.patch.dict(os.environ, NO_NETWORK):
        asyncio.run(nbclient.NotebookClient(ready, timeout=300, kernel_name="python3", resources=place).async_execute())
    return ready


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_runs_shows_a_picture_and_prints_little(book: Path, tmp_path: Path) -> None:
    if library := NEEDS.get(book.stem):
        pytest.importorskip(library)
    outputs = [output for cell in run(book, tmp_path).cells for output in cell.get("outputs", [])]
    shown = [output.get("data", {}) for output in outputs]
    assert any("image/png" in data for data in shown)
    # A picture that is only named, as <Figure ...>, is one that nobody sees.
    assert [data for data in shown if "<Figure" in data.get("text/plain", "") and "image/png" not in data] == []
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    texts = [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs]
    assert max(len(text) for text in texts) <= MOST_TEXT


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_is_one_question_and_is_kept_without_outputs(book: Path) -> None:
    kept = read(book)
    assert len(kept.cells) <= MOST_CELLS
    assert kept.cells[0].source.startswith("# ")
    assert "**The question.**" in kept.cells[0].source
    assert [cell for cell in kept.cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_the_gallery_lists_every_notebook() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(BOOKS) == 9
    assert [book.name for book in BOOKS if f"]({book.name})" not in listed] == []
