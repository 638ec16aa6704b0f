"""The code of a page, run as it stands: for the site, which shows what came of it, and for the tests.

Blocks marked `python` or `sh` run in their order, in one namespace and one empty folder for each page, with warnings as
errors. What a block prints, and the value of its last line, is its output; a figure in that place is its picture. Every
file that a page writes can be linked to as made/PAGE/FILE.

>>> list(blocks("```python\\n1 + 1\\n```\\n"))
[Block(language='python', code='1 + 1', first=1, last=3)]
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from typer.testing import CliRunner

FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("python", "sh")
WIDTH = 88
# 96 of the browser's points are an inch; twice that is sharp on every screen.
PICTURE_DPI = 170


@dataclass(frozen=True)
class Block:
    """A piece of code and the lines of the page, counted from 1, that its fences are."""

    language: str
    code: str
    first: int
    last: int


@dataclass
class Outcome:
    """What came of a page: for each block its output and its picture's file, and every file written, by its path."""

    outputs: list[str] = field(default_factory=list)
    pictures: list[str | None] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


def blocks(markdown: str) -> Iterator[Block]:
    """The pieces of code of a page that run."""
    for match in FENCE.finditer(markdown):
        if match["language"] in RUN:
            first = markdown.count("\n", 0, match.start()) + 1
            last = first + match.group().count("\n")
            yield Block(match["language"], match["code"].rstrip("\n"), first, last)


def markdown_of(page: Path) -> str:
    """The text of a page; a notebook's cells are its paragraphs and its blocks of code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"]).strip("\n")
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
    return "\n\n".join(parts) + "\n"


@functools.cache
def run(page: Path) -> Outcome:
    """Run a page once; whoever asks again gets the same outcome.

    Raises what the code raises, with the page and the line in the traceback.
    """
    outcome = Outcome()
    names: dict[str, Any] = {"__name__": "__main__"}
    folder_before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, _environment(folder)):
        os.chdir(folder)
        try:
            for number, block in enumerate(blocks(markdown_of(page)), start=1):
                if block.language == "sh":
                    outcome.outputs.append(_shell(block, page))
                    outcome.pictures.append(None)
                    continue
                printed, value = _python(block, page, names)
                picture = None
                if hasattr(value, "savefig"):
                    picture = f"{number}.png"
                    value.savefig(picture, dpi=PICTURE_DPI, metadata={"Software": None})
                elif hasattr(value, "_repr_mimebundle_"):
                    # A widget lives in a notebook alone, and brings a picture for pages.
                    picture = f"{number}.png"
                    Path(picture).write_bytes(base64.b64decode(value._repr_mimebundle_()[0]["image/png"]))
                elif value is not None:
                    printed += _shown(value)
                outcome.outputs.append(printed.rstrip())
                outcome.pictures.append(picture)
            written = (file for file in Path().rglob("*") if file.is_file())
            outcome.files = {file.as_posix(): file.read_bytes() for file in written}
        finally:
            os.chdir(folder_before)
    return outcome


def _environment(folder: str) -> dict[str, str]:
    """No data but what the package brings, no screen, and lines as wide as the page."""
    return {
        "IMAPCE_CACHE": f"{folder}.cache",
        "IMAPCE_DATA": "",
        "MPLBACKEND": "agg",
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "error",
    }


def _refuse_warnings() -> None:
    """Warnings are errors, but for those that Python shows to nobody: what one library asks of another."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    # anndata asks for the second through contextlib, of which it is told then.
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(anndata|scanpy)\.")
    warnings.filterwarnings("ignore", "The 'mode.chained_assignment' option is deprecated", DeprecationWarning)


def _python(block: Block, page: Path, names: dict[str, Any]) -> tuple[str, Any]:
    """What a block prints and, where its last line is an expression, the value of that."""
    # Lines before it, so that a traceback names the line of the page.
    tree = ast.parse("\n" * block.first + block.code, filename=str(page))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        _refuse_warnings()
        exec(compile(tree, str(page), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(page), "eval"), names)
    return printed.getvalue(), value


def _shown(value: Any) -> str:
    """A value as a reader wants to see it: text as text, and what is long in lines of the page's width."""
    text = value if isinstance(value, str) else repr(value)
    return text if "\n" in text else "\n".join(textwrap.wrap(text, WIDTH))


def _shell(block: Block, page: Path) -> str:
    """What the commands of a block write to standard output, one command a line (`\\` goes on with the next).

    A plain `imapce ...`, with or without `> FILE`, runs in this process, since each of its own would import everything
    anew (2 s of 3); what has a pipe or is another program goes to bash.
    """
    from imapce.cli import app

    told = []
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        if words[0] != "imapce" or "|" in words:
            script = f'imapce() {{ "{sys.executable}" -m imapce "$@"; }}\n{line}\n'
            done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False)
            code, output, complaint = done.returncode, done.stdout, done.stderr
        else:
            *words, target = [*words, None] if ">" not in words else [*words[: words.index(">")], words[-1]]
            with warnings.catch_warnings():
                _refuse_warnings()
                result = CliRunner().invoke(app, words[1:])
            code, output, complaint = result.exit_code, result.stdout, result.stderr or str(result.exception)
            if target is not None:
                Path(target).write_text(output, encoding="utf-8")
                output = ""
        if code:
            raise RuntimeError(f"{page}, line {block.first}: {line}: {complaint}")
        told += [line.rstrip() for line in output.splitlines()]
    return "\n".join(told).strip("\n")
