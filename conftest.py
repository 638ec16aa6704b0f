"""How the examples in docstrings run: with `np` at hand, in a folder of their own, and without the network.

Every docstring of the package is a test (`--doctest-modules`). `np` is the one name an example may use without
importing it, as every reader knows it; what else it needs and its module does not have, it imports, so that it can be
copied as it stands. Examples that write files do so in an empty folder that is thrown away.

Left out are only the modules around a library of an extra that is not installed, and the examples of data sets whose
files are not on disk. Any other import that fails is an error: `--doctest-ignore-import-errors` would hide it.
"""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

# What some modules import as they are loaded and an installation without their extra does not have.
_NUMBA = ("fair_nerv_kernel", "fair_nerv", "tsne_affinities", "tsne_descent", "ctsne")
OF_AN_EXTRA = {
    "numba": tuple(f"baselines/{module}.py" for module in _NUMBA),
    "openTSNE": ("baselines/tsne_descent.py", "baselines/ctsne.py"),
    "anndata": ("anndata",),
}
collect_ignore = [
    f"src/imapce/{place}"
    for library, places in OF_AN_EXTRA.items()
    if importlib.util.find_spec(library) is None
    for place in places
]
# The same of the extra `app`; the rest of that room needs no library of its own.
collect_ignore += [
    f"src/imapce/app/{module}.py"
    for library, module in (("starlette", "server"), ("uvicorn", "server"), ("anywidget", "widget"))
    if importlib.util.find_spec(library) is None
]
# What an example uses where its module imports it only when asked to.
EXAMPLE_NEEDS = {
    "imapce.baselines.embedding.TSNE": "openTSNE",
    "imapce.exploration.session.Exploration.from_anndata": "anndata",
    "imapce.tables.named.features": "anndata",
}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is there when all tests are collected stays to the end, so the garbage collector need not look at it again.

    Of 14 s of collecting it took 3.5 s, and of the tests that followed every 25th second, looking through the modules
    and the thousands of tests themselves.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    """`np`, and nothing else."""
    doctest_namespace["np"] = np


@pytest.fixture(autouse=True)
def _place_of_an_example(request: pytest.FixtureRequest) -> Iterator[None]:
    """An example of a docstring starts in an empty folder and leaves the environment as it was; one about a data set
    runs where its files are."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    if library := EXAMPLE_NEEDS.get(request.node.name):
        pytest.importorskip(library)
    room, _, name = request.node.name.rpartition(".")
    if room == "imapce.datasets.fetchers":
        from imapce.datasets.catalogue import CATALOGUE

        absent = [entry.name for entry in CATALOGUE if entry.call.startswith(f"{name}(") and not entry.is_on_disk()]
        if absent:
            pytest.skip(f"the files of {' and '.join(absent)} are not on disk")
    folder: Path = request.getfixturevalue("tmp_path")
    request.getfixturevalue("monkeypatch").chdir(folder)
    # Only the data sets themselves may look into the user's cache; no example writes into it.
    elsewhere = {} if room == "imapce.datasets.fetchers" else {"IMAPCE_CACHE": str(folder / "cache")}
    with mock.patch.dict(os.environ, elsewhere):
        yield
