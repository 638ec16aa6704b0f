"""Finished cells on disk, so that an interrupted run goes on where it stopped.

A cell is one computation: a dictionary of settings in, numbers and arrays out. It is found again by its settings and by
the code that made it: change a module the method imports, and its cells are made anew (comments and docstrings do not
count).

    >>> cells.recall({"data": "synthetic", "method": "PCA"}, compute)                       # doctest: +SKIP
    {'seconds': 0.01, 'embedding': array(...)}
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from imapce.common.whole_files import whole_file

# The package itself lists its lazy public names, and a session can draw itself or open its page: none of it computes.
SHOWING = ("imapce.plotting", "imapce.app", "imapce.anndata")
# Beside its results a cell keeps how long they took, so that the time of an interrupted run can be told.
MADE_IN = "made in seconds"


class Cells:
    """A folder of finished cells; `seconds` is what all that were asked for took to make, whenever that was."""

    def __init__(self, folder: Path, *, fresh: bool = False):
        self.folder = folder
        self.fresh = fresh
        self.seconds = 0.0
        self._made_now: set[str] = set()
        self._counted: set[str] = set()

    def recall(self, settings: Mapping[str, Any], code: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `compute()` gave for these settings, from disk if it is there; `code` is the module that computes."""
        label = json.dumps({**settings, "code": code, "fingerprint": fingerprint(code)}, sort_keys=True, default=str)
        name = hashlib.sha256(label.encode()).hexdigest()[:24]
        path = self.folder / f"{name}.npz"
        if path.exists() and (not self.fresh or name in self._made_now):
            with np.load(path, allow_pickle=False) as stored:
                found = {key: _plain(stored[key]) for key in stored.files if key != "settings"}
            self._count(name, found.pop(MADE_IN))
            return found
        start = time.perf_counter()
        result = compute()
        made_in = time.perf_counter() - start
        self._count(name, made_in)
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as stream:
            np.savez_compressed(stream, settings=np.asarray(label), **{**result, MADE_IN: made_in})
        self._made_now.add(name)
        return result

    def _count(self, name: str, seconds: float) -> None:
        if name not in self._counted:
            self._counted.add(name)
            self.seconds += seconds


def _plain(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array


@cache
def fingerprint(module: str) -> str:
    """A hash of the syntax trees of a module and of the imapce and experiments modules it imports, all the way down."""
    trees: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in trees or name == "imapce" or name.startswith(SHOWING):
            continue
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        waiting += [found for found in _imports(tree) if found.split(".")[0] in ("imapce", "experiments")]
        trees[name] = ast.dump(_without_docstrings(tree))
    return hashlib.sha256(json.dumps(trees, sort_keys=True).encode()).hexdigest()[:16]


def _imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # `from imapce import tables` names a module, `from imapce.rows import Rows` a class: try both.
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0].value.value = ""
    return tree
