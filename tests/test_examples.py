"""Every notebook of the gallery runs, shows a picture, prints little, and is kept without its outputs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat, of the development tools, is not installed")
pytest.importorskip("ipykernel", reason="ipykernel, of the development tools, is not installed")
jupyter_client = pytest.importorskip("jupyter_client", reason="jupyter_client comes with ipykernel")

FOLDER = Path(__file__).parents[1] / "examples"
BOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {"genes_with_a_nuisance_known": "anndata"}
SHOWN = ("stream", "display_data", "execute_result")
MOST_CELLS = 12
MOST_TEXT = 2_000
# No test downloads: what is not on disk is not within reach, and the notebooks say what they do then.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def read(book: Path) -> Any:
    return nbformat.read(book, as_version=4)


class Kernel:
    """One kernel of this Python for all notebooks: each starts without a name of another, in a folder of its own.

    Starting one and importing what notebooks need takes two seconds, most of what a notebook takes.
    """

    def __init__(self) -> None:
        with mock.patch.dict(os.environ, NO_NETWORK):
            self.manager, self.client = jupyter_client.manager.start_new_kernel(kernel_name="python3")

    def run(self, book: Path, folder: Path) -> list[Any]:
        """All outputs of the notebook, in their order."""
        self.execute(f"%reset -f\nimport os\nos.chdir({str(folder)!r})\ndel os")
        code = [cell.source for cell in read(book).cells if cell.cell_type == "code"]
        return [output for source in code for output in self.execute(source)]

    def execute(self, source: str) -> list[Any]:
        """What a cell shows; where it raises, the test fails with its traceback."""
        told: list[Any] = []
        reply = self.client.execute_interactive(source, timeout=300, output_hook=told.append, store_history=True)
        assert reply["content"]["status"] == "ok", "\n".join(reply["content"]["traceback"])
        return [nbformat.v4.output_from_msg(message) for message in told if message["msg_type"] in SHOWN]

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    started = Kernel()
    yield started
    started.end()


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_runs_shows_a_picture_and_prints_little(book: Path, kernel: Kernel, tmp_path: Path) -> None:
    if library := NEEDS.get(book.stem):
        pytest.importorskip(library)
    outputs = kernel.run(book, tmp_path)
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
