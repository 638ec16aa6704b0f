"""The contract of the package: public names, their signatures, and which module may import which."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import imapce
from imapce import metrics

ROOT = Path(__file__).parents[1]


def test_the_public_names_exist() -> None:
    for name in ("IMAPCE", "Attributes", "Samples", "Subset", "load_model", "ImapceError", "Optimum", "__version__"):
        assert name in imapce.__all__
        assert hasattr(imapce, name)


def test_imapce_has_the_parameters_and_defaults_of_the_contract() -> None:
    parameters = inspect.signature(imapce.IMAPCE).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "n_components": 2,
        "alpha": "auto",
        "mu": "auto",
        "rank": "auto",
        "standardize": True,
        "n_starts": 10,
        "tol": 1e-6,
        "max_iter": 500,
        "engine": "auto",
        "random_state": None,
        "verbose": False,
        "missing": "error",
        "outliers": "auto",
    }
    keyword_only = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    assert keyword_only == list(parameters)[1:]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_fitting_takes_the_prior_by_keyword(method: str) -> None:
    parameters = inspect.signature(getattr(imapce.IMAPCE, method)).parameters
    assert list(parameters) == ["self", "X", "y", "prior"]
    assert parameters["prior"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["prior"].default is None


@pytest.mark.parametrize(
    ("prior", "first"), [(imapce.Attributes, "columns"), (imapce.Samples, "background"), (imapce.Subset, "rows")]
)
def test_every_prior_takes_its_subject_and_a_weight(prior: type, first: str) -> None:
    parameters = inspect.signature(prior).parameters
    assert list(parameters) == [first, "weight", *(["erase"] if prior is imapce.Attributes else [])]
    assert parameters["weight"].default == 1.0


def test_columns_are_erased_only_where_it_is_asked_for() -> None:
    assert inspect.signature(imapce.Attributes).parameters["erase"].default is False


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("normalized_laplacian_score", {"embedding": None, "labels": None, "n_neighbors": range(10, 101, 10)}),
        ("cluster_jaccard", {"labels_true": None, "labels_pred": None, "definition": "union"}),
        ("classifier_scores", {"embedding": None, "labels": None, "classifier": "linear", "n_splits": 10}),
        ("residual_predictability", {"embedding": None, "attribute": None}),
    ],
)
def test_metrics_have_the_signatures_of_the_contract(name: str, first: dict[str, object]) -> None:
    parameters = inspect.signature(getattr(metrics, name)).parameters
    assert list(parameters)[: len(first)] == list(first)
    for place, (parameter, default) in enumerate(first.items()):
        if default is not None:
            assert parameters[parameter].default == default
        # Three can be given by position, as these names are in other libraries; the fourth says what it is.
        by_position = parameters[parameter].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert by_position == (place < 3), parameter


def test_fitted_attributes_of_the_contract_exist() -> None:
    from helpers import grouped

    model = imapce.IMAPCE(mu=10.0, n_starts=2, random_state=0).fit(grouped(60).X)
    for name in (
        *("components_", "mean_", "scale_", "alpha_", "mu_", "objective_", "kurtosis_", "optima_", "n_iter_"),
        *("n_evaluations_", "stop_reason_", "n_features_in_"),
    ):
        assert hasattr(model, name), name


def test_importing_the_package_loads_no_optional_library() -> None:
    heavy = ["torch", "dask", "panel", "matplotlib.pyplot", "polars", "typer"]
    code = f"import sys, imapce; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_imports_go_one_way() -> None:
    script = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which("lint-imports")
    if script is None:
        pytest.skip("import-linter is not installed")
    done = subprocess.run([script, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
