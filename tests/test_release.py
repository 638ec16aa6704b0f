"""What a release is made with: constraints that say what pyproject.toml says, workflows that GitHub takes, the table of
the night."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import imapce

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What users ask for; the others are tools of those who work on this, peers and a card.
EXTRAS_OF_USERS = ("anndata", "app", "baselines", "dask", "excel")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def constraints(name: str) -> list[Requirement]:
    lines = (ROOT / ".ci" / "constraints" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pinned(constraint: Requirement) -> Version:
    (only,) = constraint.specifier
    assert only.operator == "==", constraint
    return Version(only.version)


def lower_bounds(requirements: list[str]) -> dict[str, Version]:
    found = {}
    for requirement in map(Requirement, requirements):
        for bound in requirement.specifier:
            if bound.operator == ">=":
                found[requirement.name.lower()] = Version(bound.version)
    return found


# --- versions ---------------------------------------------------------------------------------------------------------


def test_one_version_stands_everywhere() -> None:
    assert PROJECT["version"] == imapce.__version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == imapce.__version__


def test_the_lowest_versions_are_the_lower_bounds_of_the_project() -> None:
    extras = PROJECT["optional-dependencies"]
    claimed = lower_bounds([*PROJECT["dependencies"], *(one for name in EXTRAS_OF_USERS for one in extras[name])])
    claimed |= {name: version for name, version in lower_bounds(extras["test"]).items() if name in ("pandas", "polars")}
    lowest = {one.name.lower(): pinned(one) for one in constraints("lowest")}
    assert {"numpy", "scipy", "scikit-learn", "pandas", "pyarrow"} <= claimed.keys()
    assert {name: lowest.get(name) for name in claimed} == claimed


def test_every_dependency_has_a_lower_bound() -> None:
    assert len(lower_bounds(PROJECT["dependencies"])) == len(PROJECT["dependencies"])


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_newest_versions_are_allowed_and_one_for_each_python(python: str) -> None:
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    here = [
        one for one in constraints("newest") if one.marker is None or one.marker.evaluate({"python_version": python})
    ]
    newest = {one.name.lower(): pinned(one) for one in here}
    assert len(newest) == len(here)
    assert {"numpy", "scipy", "scikit-learn", "pandas", "pyarrow"} <= newest.keys()
    for requirement in map(Requirement, PROJECT["dependencies"]):
        if version := newest.get(requirement.name.lower()):
            assert requirement.specifier.contains(version), requirement


# --- GitHub -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_files_of_the_hosting_are_what_their_schema_says(schema: str, files: list[Path]) -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema, of the development tools, is not installed")
    assert files
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)],
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflows_test_every_python_and_both_sets_of_versions() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["environments"]["strategy"]["matrix"]
    promised = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert matrix["python"] == promised
    assert {*matrix["versions"], *(one["versions"] for one in matrix["include"])} == {"lowest", "newest"}


def test_a_release_is_published_without_a_secret() -> None:
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    jobs = yaml.safe_load(text)["jobs"]
    granted = [name for name, job in jobs.items() if job.get("permissions", {}).get("id-token") == "write"]
    # What may publish does nothing else: it runs no code of this repository.
    assert granted == ["publish"]
    assert all("run" not in step for step in jobs["publish"]["steps"])
    assert jobs["publish"]["environment"]
    assert jobs["publish"]["needs"] == "test"


@pytest.mark.parametrize("path", [*WORKFLOWS, *FORMS], ids=lambda path: path.name)
def test_what_a_workflow_names_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for named in re.findall(r"(?<![\w/])(\.ci/[\w/.]+|tests/[\w/.]+)", text):
        assert (ROOT / named).exists(), named
    # No address of a project that is made up.
    assert "github.com" not in text


# --- the night --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nightly() -> ModuleType:
    loader = SourceFileLoader("nightly", str(ROOT / ".ci" / "nightly"))
    spec = importlib.util.spec_from_loader("nightly", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        # Dataclasses look their module up by its name.
        patch.setitem(sys.modules, "nightly", module)
        loader.exec_module(module)
    return module


def test_the_night_goes_on_after_a_failure_and_tells_one_table(nightly: ModuleType) -> None:
    ticks = iter([0.0, 60.0, 60.0, 150.0, 150.0, 150.0])
    statuses = {"checks": 0, "versions": 2, "absent": None}
    steps = [nightly.Step(name, (name,)) for name in statuses]
    outcomes = nightly.take(steps, lambda step: statuses[step.name], lambda: next(ticks))
    assert [" ".join(line.split()) for line in nightly.table(outcomes).splitlines()] == [
        "step result minutes",
        "checks passed 1.0",
        "versions failed (2) 1.5",
        "absent cannot be run 0.0",
        "the night 2 of 3 failed 2.5",
    ]
    assert len({len(line) for line in nightly.table(outcomes).splitlines()}) == 1


@pytest.mark.parametrize(("code", "status", "told"), [(0, 0, "all passed"), (3, 1, "failed (3)")])
def test_the_night_ends_as_its_steps_did(
    nightly: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    code: int,
    status: int,
    told: str,
) -> None:
    ended = nightly.Step("ended", (sys.executable, "-c", f"print('said'); raise SystemExit({code})"))
    unseen = nightly.Step("unseen", ("no-such-command",))
    monkeypatch.setattr(nightly, "steps", lambda: [unseen, ended])
    assert nightly.main(["ended"]) == status
    out = capfd.readouterr().out
    assert "said" in out
    assert told in out
    assert "unseen" not in out
    assert nightly.main(["unseen"]) == 1
    assert nightly.main(["neither"]) == 2


def test_the_steps_of_the_night_are_there(nightly: ModuleType) -> None:
    steps = nightly.steps()
    assert sum("tests/app" in step.command for step in steps) == 5
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for step in steps:
        first, *others = step.command
        assert first != "make" or others[0] in targets
        assert not first.startswith(".ci/") or os.access(ROOT / first, os.X_OK)
