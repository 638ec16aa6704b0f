"""What would be published: wheel and source archive of this tree are whole, and the wheel works where it is alone."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import imapce

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("build", "hatchling")),
    reason="build or hatchling is not installed",
)
FIT = """
import numpy as np, pathlib, imapce
from imapce import IMAPCE, Attributes, load_model
X = np.random.default_rng(0).normal(size=(60, 4))
model = IMAPCE(random_state=0, n_starts=2).fit(X, prior=Attributes([0]))
model.save("view.imapce")
assert np.array_equal(load_model("view.imapce").transform(X), model.transform(X))
print(pathlib.Path(imapce.__file__).resolve())
"""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both archives; the wheel is built from the source archive, as installers do where they must."""
    out = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies are those of this environment, by path."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place))
    # addsitedir would also run this environment's own .pth files, among them a development install of imapce.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install"),
        *("--no-deps", "--no-index", "--force-reinstall", "--disable-pip-version-check", wheel),
        cwd=place,
    )
    return place


def test_the_wheel_holds_the_package_and_its_licence_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "imapce").rglob("*.py")}
    assert sources <= set(names)
    assert {name.split("/")[0] for name in names} == {"imapce", f"imapce-{imapce.__version__}.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    # Without it type checkers take the package for one that has no types.
    assert "imapce/py.typed" in names


def test_the_source_archive_holds_what_a_packager_asks_for(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    wanted = (
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Makefile",
        ".ci/constraints/lowest.txt",
        ".github/workflows/tests.yml",
        "src/imapce/py.typed",
        "conftest.py",
    )
    assert names >= {*wanted, "tests/test_packaging.py"}


def test_an_index_would_take_both_archives(built: Path) -> None:
    pytest.importorskip("twine")
    told = run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=built)
    assert told.count("PASSED") == 2


def test_every_extra_that_a_sentence_tells_to_install_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "README.md"]
    told = {name for path in sources for name in re.findall(r"imapce\[([a-z]+)\]", path.read_text())}
    assert told
    assert told <= set(extras)


def test_the_installed_package_fits_saves_and_loads_from_another_folder(installed: Path, tmp_path: Path) -> None:
    where = Path(run(installed / "bin" / "python", "-c", FIT, cwd=tmp_path))
    assert installed.resolve() in where.parents


def test_the_console_script_tells_its_version(installed: Path, tmp_path: Path) -> None:
    assert imapce.__version__ in run(installed / "bin" / "imapce", "--version", cwd=tmp_path)


def test_the_citation_is_that_of_the_readme_and_of_this_version() -> None:
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    bibtex = (ROOT / "README.md").read_text(encoding="utf-8").split("```bibtex")[1].split("```")[0]
    fields = dict(re.findall(r"(\w+)\s*=\s*\{(.*)\}", bibtex))
    paper = cited["preferred-citation"]
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert " and ".join(names) == fields["author"]
    assert (paper["title"], paper["doi"], str(paper["year"])) == (fields["title"], fields["doi"], fields["year"])
    assert cited["version"] == imapce.__version__
    assert "independent implementation" in cited["message"]
