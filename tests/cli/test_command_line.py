"""The command itself: version and help, run as a module, and quick to answer."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import imapce
from commands import files_beside, succeed
from imapce.cli.messages import warnings_in_one_line
from imapce.cli.options import with_option_groups


def test_version_and_help() -> None:
    assert succeed("--version") == f"imapce {imapce.__version__}\n"
    for command in ("embed", "explore", "compare", "transform", "info", "datasets", "demo"):
        told = succeed(command, "--help")
        assert "Example" in told
        assert f"imapce {command}" in told


def test_as_a_module_from_another_folder(tmp_path: Path, plain: Path) -> None:
    source = str(Path(imapce.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    away = tmp_path / "away"
    away.mkdir()

    def module(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "imapce", *words]
        return subprocess.run(command, cwd=away, env=environment, capture_output=True, text=True, timeout=60)

    done = module("embed", "../plain.csv", "--starts", "3", "-o", "view.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert files_beside(away / "view.csv") == ["view.csv"]
    failed = module("embed", "absent.csv")
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("words", [("--help",), ("embed", "--help"), ("compare", "--help")])
def test_help_needs_no_heavy_library(words: tuple[str, ...]) -> None:
    heavy = ("sklearn", "scipy", "pyarrow", "numpy", "matplotlib")
    check = f"""
import sys, imapce.cli
sys.argv[1:] = {words!r}
try:
    imapce.cli.main()
finally:
    print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    source = str(Path(imapce.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run([sys.executable, "-c", check], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "Usage: imapce" in done.stdout


def test_commands_share_their_options() -> None:
    of_data = ("--known", "--erase", "--background", "--known", "--labels", "--drop", "--columns", "--dates")
    of_text = ("--sep", "--decimal", "--encoding", "--no-header")
    of_every_fit = ("--alpha", "--mu", "--center-only", "--seed", "--missing")
    of_one_view = ("--components", "--starts")
    for command, others in (("embed", of_one_view), ("explore", of_one_view), ("compare", ())):
        told = succeed(command, "--help")
        for option in (*of_data, *of_text, *of_every_fit, *others):
            assert option in told, (command, option)
    assert "--starts" not in succeed("compare", "--help")
    assert all(option in succeed("transform", "--help") for option in of_text)


def test_what_libraries_tell_those_who_write_code_is_no_line_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings_in_one_line():
        for of_code in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.warn("this call goes away", of_code, stacklevel=1)
        warnings.warn("two rows are the same", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "imapce: warning: two rows are the same\n"


@dataclass(frozen=True)
class Paint:
    """A group of two options, the first of which must be given."""

    colour: Annotated[str, typer.Option("--colour")]
    layers: Annotated[int, typer.Option("--layers")] = 1


def test_a_group_of_options_reaches_its_command_whole() -> None:
    got: list[object] = []

    def house(name: str, *, paint: Paint, doors: Annotated[int, typer.Option("--doors")] = 2) -> None:
        got.extend([name, paint, doors])

    small = typer.Typer()
    small.command()(with_option_groups(house))
    words = ("home", "--layers", "3", "--colour", "red", "--doors", "4")
    assert CliRunner().invoke(small, list(words)).exit_code == 0
    assert got == ["home", Paint("red", 3), 4]
    assert CliRunner().invoke(small, ["home"]).exit_code == 2
