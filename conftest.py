"""How the examples in docstrings run: with `np` at hand, in a folder of their own, and without the network.

Every docstring of the package is a test (`--doctest-modules`). `np` is the one name an example may use without
importing it, as every reader knows it; what else it needs and its module does not have, it imports, so that it can be
copied as it stands. Examples that write files do so in an empty folder that is thrown away.

Left out are only the modules around a library of an extra that is not installed, and the examples of data sets whose
files are not on disk. Any other import that fails is an error: `--doctest-ignore-import-errors` would hide it.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

# What some modules import as they are loaded and an installation without the extra `baselines` does not have.
OF_AN_EXTRA = {
    "numba": ("elementary", "fair_nerv_kernel", "fair_nerv", "tsne_affinities", "nbody", "tsne_descent", "ctsne"),
    "openTSNE": ("nbody", "tsne_descent", "ctsne"),
}
collect_ignore = [
    f"src/imapce/baselines/{module}.py"
    for library, modules in OF_AN_EXTRA.items()
    if importlib.util.find_spec(library) is None
    for module in modules
]


@pytest.fixture(autouse=True, scope="session")
def _names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    """`np`, and nothing else."""
    doctest_namespace["np"] = np


@pytest.fixture(autouse=True)
def _place_of_an_example(request: pytest.FixtureRequest) -> None:
    """An example of a docstring starts in an empty folder; one about a data set runs where its files are."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    monkeypatch.chdir(request.getfixturevalue("tmp_path"))
    room, _, name = request.node.name.rpartition(".")
    if room == "imapce.datasets.fetchers":
        from imapce.datasets.catalogue import CATALOGUE

        absent = [entry.name for entry in CATALOGUE if entry.call.startswith(f"{name}(") and not entry.is_on_disk()]
        if absent:
            pytest.skip(f"the files of {' and '.join(absent)} are not on disk")
