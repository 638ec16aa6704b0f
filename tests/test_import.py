"""What a plain `import imapce` gives: every public name and submodule, none of them loaded before it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import imapce

SUBMODULES = ("anndata", "baselines", "datasets", "metrics", "plotting", "tables")


def in_a_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "name",
    ["baselines.PCA", "datasets.load_digits", "metrics.knn_accuracy", "plotting.plot_embedding", "tables.select"],
)
def test_a_submodule_needs_no_import_of_its_own(name: str) -> None:
    assert in_a_new_process(f"import imapce; print(callable(imapce.{name}))") == "True"


def test_every_public_name_is_there() -> None:
    assert all(hasattr(imapce, name) for name in (*imapce.__all__, *SUBMODULES))


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "typer", "rich")
    code = f"import sys, json, imapce; dir(imapce); print(json.dumps([one for one in {heavy!r} if one in sys.modules]))"
    assert json.loads(in_a_new_process(code)) == []


def test_the_estimator_comes_with_what_every_fit_needs_and_nothing_else() -> None:
    """scikit-learn itself imports pandas where it is installed, and scipy.stats: these are not ours to leave out."""
    heavy = (
        *("matplotlib", "rich", "typer", "polars", "dask", "anndata", "numba", "openTSNE", "umap", "starlette"),
        *("sklearn.metrics", "sklearn.cluster", "sklearn.mixture", "sklearn.neighbors", "sklearn.linear_model"),
        *("sklearn.datasets", "sklearn.preprocessing", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet"),
        *("imapce.tables.files", "imapce.exploration", "imapce.metrics", "imapce.plotting", "imapce.datasets"),
    )
    code = f"""
import sys, json
sys.modules["pandas"] = None
from imapce import IMAPCE
print(json.dumps([one for one in {heavy!r} if one in sys.modules]))
"""
    assert json.loads(in_a_new_process(code)) == []


def test_dir_lists_every_public_name() -> None:
    assert set(dir(imapce)) >= {*imapce.__all__, *SUBMODULES}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = imapce.nonsense  # type: ignore[attr-defined]
