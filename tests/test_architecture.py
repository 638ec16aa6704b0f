"""The contract of the package: public names, their signatures, and which module may import which."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import imapce
from imapce import errors, metrics
from imapce.cli import messages

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "imapce"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE = 500
MOST_LAYERS = 9
# Participles and a pronoun that once named a formatter here, a mask there and a callback elsewhere.
NO_VERBS = ("told", "said", "hidden", "refined", "one")


def test_the_public_names_exist() -> None:
    for name in (
        *("IMAPCE", "Given", "Attributes", "Labels", "Samples", "Subset", "load_model", "ImapceError", "Optimum"),
        "__version__",
    ):
        assert name in imapce.__all__
        assert hasattr(imapce, name)


def test_imapce_has_the_parameters_and_defaults_of_the_contract() -> None:
    parameters = inspect.signature(imapce.IMAPCE).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "n_components": 2,
        "alpha": "auto",
        "mu": "auto",
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


@pytest.mark.parametrize("estimator", [imapce.IMAPCE, imapce.Given])
def test_labels_of_new_rows_are_given_beside_them(estimator: type) -> None:
    for method in ("transform", "given"):
        parameters = inspect.signature(getattr(estimator, method)).parameters
        assert list(parameters)[:3] == ["self", "X", "labels"]
        assert parameters["labels"].default is None


def test_given_takes_what_is_known_first() -> None:
    parameters = inspect.signature(imapce.Given).parameters
    assert next(iter(parameters)) == "prior"
    assert parameters["prior"].default is None


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
        *("n_evaluations_", "stop_reason_", "n_features_in_", "effect_", "read_back_", "path_", "outliers_", "engine_"),
    ):
        assert hasattr(model, name), name


def test_importing_the_package_loads_no_optional_library() -> None:
    heavy = ["cupy", "dask", "starlette", "anndata", "matplotlib.pyplot", "polars", "typer"]
    code = f"import sys, imapce; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_imports_go_one_way() -> None:
    script = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which("lint-imports")
    if script is None:
        pytest.skip("import-linter is not installed")
    done = subprocess.run([script, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_are_few_and_every_room_is_in_one() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    assert len(contract["layers"]) <= MOST_LAYERS
    assert contract["exhaustive"] is True
    assert contract["exhaustive_ignores"] == ["__main__"]


def test_the_corridor_is_empty() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_one_concept(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_MODULE


@cache
def defined(*kinds: type[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]) -> dict[str, list[str]]:
    """The files in which every class or function, at whatever depth, is defined, by its name."""
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kinds):
                found.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    return found


@pytest.mark.parametrize("word", NO_VERBS)
def test_a_function_is_called_by_what_it_does(word: str) -> None:
    functions = defined(ast.FunctionDef, ast.AsyncFunctionDef)
    assert functions.get(word, []) + functions.get(f"_{word}", []) == []


def test_which_columns_are_known_is_one_question() -> None:
    assert set(defined(ast.FunctionDef).get("known_columns", [])) == {"priors/problem.py"}


def private_names_of_others(source: str) -> Iterator[str]:
    """`x._name` where neither x is the object itself nor the module defines the name, and private names imported."""
    tree = ast.parse(source)
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_itself(node.value):
            own.add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if not is_itself(node.value):
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("imapce"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names if is_private(alias.name))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_itself(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_touches_a_private_name_of_another_s_object(path: Path) -> None:
    assert list(private_names_of_others(path.read_text())) == []


def test_the_rule_of_private_names_finds_what_breaks_it() -> None:
    broken = """
from imapce.rows.dense import _chosen
class Mine:
    _own = 1
    def method(self, model, other):
        self._kept = model._encoding
        return other._own, other._kept, super()._above, self._model._open()
"""
    expected = ["imapce.rows.dense._chosen", "model._encoding", "self._model._open"]
    assert sorted(private_names_of_others(broken)) == expected


KINDS_OF_PRIORS = {"Attributes", "Labels", "Samples", "Subset"}


def questions_of_kind(source: str) -> Iterator[str]:
    """Where a module asks which kind of prior it has: by isinstance, type(...) is, match, or the word for the kind."""
    words = {kind.lower() for kind in KINDS_OF_PRIORS}
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = node.args[1]
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            asked = ast.Tuple(node.comparators)
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".kind"):
            if {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)} & words:
                yield ast.unparse(node)
            continue
        else:
            continue
        names = {name.id for name in ast.walk(asked) if isinstance(name, ast.Name)}
        names |= {name.attr for name in ast.walk(asked) if isinstance(name, ast.Attribute)}
        if names & KINDS_OF_PRIORS:
            yield ast.unparse(node)


def test_no_other_room_asks_which_kind_of_prior_it_has() -> None:
    others = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] != "priors"]
    assert {str(path): found for path in others if (found := list(questions_of_kind(path.read_text())))} == {}


def test_the_rule_of_kinds_finds_what_breaks_it() -> None:
    broken = """
if isinstance(one, (str, Labels)) or type(one) is kinds.Subset or one.kind == "samples" or isinstance(one, ReadLabels):
    match one:
        case Attributes(columns): pass
"""
    assert len(list(questions_of_kind(broken))) == 4


def private_names_inherited(sources: dict[str, str]) -> Iterator[str]:
    """`Class._name` for every private name that a class reads of itself and only a base of another module defines.

    `sources` are the modules by their dotted names; classes from elsewhere, such as scikit-learn's, are not looked at.
    """
    bases: dict[str, list[str]] = {}
    own: dict[str, set[str]] = {}
    reads: dict[str, set[str]] = {}
    for module, source in sources.items():
        tree = ast.parse(source)
        homes = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                homes |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for node in tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            address = homes[node.name]
            names = (ast.unparse(base).split("[")[0] for base in node.bases)
            bases[address] = [homes.get(name, name) for name in names]
            of_self = [one for one in ast.walk(node) if isinstance(one, ast.Attribute) and is_itself(one.value)]
            reads[address] = {one.attr for one in of_self if is_private(one.attr) and isinstance(one.ctx, ast.Load)}
            own[address] = {one.attr for one in of_self if isinstance(one.ctx, ast.Store)}
            for one in ast.walk(node):
                if isinstance(one, ast.FunctionDef | ast.ClassDef):
                    own[address].add(one.name)
                elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    own[address].add(one.id)

    def lineage(address: str) -> list[str]:
        return [address, *(above for base in bases.get(address, []) for above in lineage(base))]

    for address, names in reads.items():
        here = address.rsplit(".", 1)[0]
        for name in sorted(names):
            homes_of_name = {one.rsplit(".", 1)[0] for one in lineage(address) if name in own.get(one, ())}
            if homes_of_name and here not in homes_of_name:
                yield f"{address.rsplit('.', 1)[1]}.{name}"


def test_no_class_reads_a_private_name_of_a_base_in_another_module() -> None:
    sources = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text() for path in MODULES}
    assert sorted(set(private_names_inherited(sources))) == []


def test_the_rule_of_inherited_names_finds_what_breaks_it() -> None:
    above = "class Above:\n    def __init__(self):\n        self._kept = 1\n    def _work(self): ...\n"
    below = (
        "from a.above import Above\nfrom sklearn.base import BaseEstimator\n"
        "class Below(Above):\n    def read(self):\n        return self._kept, self._work(), self._own\n"
        "    def set(self):\n        self._own = 2\n"
        "class Estimator(BaseEstimator):\n    def read(self):\n        return self._from_scikit_learn\n"
    )
    assert list(private_names_inherited({"a.above": above, "a.below": below})) == ["Below._kept", "Below._work"]


def test_only_the_command_line_and_a_bar_that_was_asked_for_draw_on_a_terminal() -> None:
    users = [path.relative_to(PACKAGE) for path in MODULES if "from rich" in path.read_text()]
    assert {str(path) for path in users if path.parts[0] != "cli"} == {"common/progress.py"}


OWN_ERRORS = frozenset(name for name in vars(errors) if name.endswith("Error"))


def surgery_on_own_sentences(source: str) -> Iterator[str]:
    """`str(problem).method(...)`, or that text given to a function of `re`, where the handler caught an own error."""
    for handler in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)):
        caught = {node.id for node in ast.walk(handler.type or ast.Tuple([])) if isinstance(node, ast.Name)}
        if not caught & OWN_ERRORS:
            continue
        for call in (node for node in ast.walk(handler) if isinstance(node, ast.Call)):
            if not isinstance(call.func, ast.Attribute):
                continue
            of_re = ast.unparse(call.func.value) == "re"
            texts = call.args if of_re else [call.func.value]
            if any(f"str({handler.name})" in ast.unparse(text) for text in texts):
                yield ast.unparse(call)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nobody_takes_a_sentence_of_ours_apart(path: Path) -> None:
    assert list(surgery_on_own_sentences(path.read_text())) == []


def test_the_rule_of_sentences_finds_what_breaks_it() -> None:
    broken = """
try:
    pass
except ImapceError as problem:
    raise ValueError(str(problem).replace("X", "DATA")) from problem
except (FileFormatError, OSError) as error:
    words = re.sub("path", "file", str(error))
except OSError as foreign:
    words = " ".join(str(foreign).split())
"""
    expected = ["re.sub('path', 'file', str(error))", "str(problem).replace('X', 'DATA')"]
    assert sorted(surgery_on_own_sentences(broken)) == expected


def test_no_surface_rewrites_sentences_by_patterns() -> None:
    """The command line has tables of names and phrases, and the page gets its sentences whole."""
    assert [
        path.name for path in (PACKAGE / "cli").glob("*.py") if re.search(r"^import re\b", path.read_text(), re.M)
    ] == []
    pattern = re.compile(
        r"(sentence|words|reason|message)\)?\.(replace|replaceAll|match|split|search)\(|RegExp|\.test\("
    )
    scripts = sorted((PACKAGE / "app" / "static").glob("*.js"))
    assert scripts
    assert [path.name for path in scripts if pattern.search(path.read_text())] == []


def test_every_phrase_of_the_command_line_is_said_by_the_library() -> None:
    library = "".join(path.read_text() for path in MODULES if path.parent.name != "cli")
    keys = {*messages.PHRASES, *messages.PHRASES_WITH_MODEL}
    assert sorted(key for key in keys if not re.search(rf'Phrase\(\s*"{key}"', library)) == []
