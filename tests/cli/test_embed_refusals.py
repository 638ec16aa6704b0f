"""`imapce embed` on what it cannot use: one line on stderr, and nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import FEATURES, QUICK, files_beside, refusal, run
from imapce.estimators.imapce import IMAPCE
from imapce.tables.files import write_table

DROP = ("--drop", "batch,celltype,number")


def test_files_that_cannot_be_read(tmp_path: Path, columns: dict[str, Any]) -> None:
    assert "does not exist" in refusal("embed", tmp_path / "absent.csv")
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert "which is empty" in refusal("embed", empty)
    cut = tmp_path / "cut.parquet"
    write_table({name: columns[name] for name in FEATURES}, cut)
    cut.write_bytes(cut.read_bytes()[:-40])
    assert "cannot be read" in refusal("embed", cut)
    assert "DATA must end in" in refusal("embed", tmp_path / "rows.doc")
    headless = tmp_path / "no_rows.csv"
    headless.write_text("a,b,c\n")
    assert "0 rows" in refusal("embed", headless)


def test_text_columns_that_must_be_features_are_named(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "text.csv"
    write_table({"d_0": columns["d_0"], "d_1": columns["d_1"], "note": [f"row {i}" for i in range(120)]}, path)
    told = refusal("embed", path, "--columns", "d_0,note")
    assert "'note' is free text" in told
    assert "(leave it out with --drop)" in told
    assert "'note' is an id" in refusal("embed", path, "--drop", "d_0,d_1")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--known", "d_00"), "--known must name a column of DATA, got 'd_00': did you mean 'd_0'"),
        (("--labels", "cell_type"), "did you mean 'celltype'?"),
        (("--drop", "bach"), "did you mean 'batch'?"),
        (("--known-rows", "bach=old"), "--known-rows must name a column of DATA, got 'bach': did you mean 'batch'?"),
        (("--known-rows", "batch"), "--known-rows must be COLUMN=VALUE"),
        (("--known-rows", "batch=odl"), "value must occur in column 'batch', got 'odl': did you mean 'old'"),
        (("--known-rows", "number=x"), "must be a number"),
        (("--known", "d_0", "--erase", "d_0"), "name it in one option only"),
        (("--mu", "large"), "--mu must be a number"),
        (("--columns", "d_00"), "--columns must name a column of DATA, got 'd_00'"),
        (("--columns", "d_0,batch", "--drop", "batch"), "name it in one option only"),
        (("--decimal", ";"), "--decimal must be '.' or ','"),
        (("--encoding", "klingon"), "--encoding must be one that Python knows"),
        (("--background", "-", "--sep", ""), "--sep must be"),
        (("--mu", "inf"), "mu must be finite"),
        (("--alpha", "-1"), "alpha must be not negative"),
        (("--alpha", "nan"), "alpha must be not negative"),
        (("--alpha", "rato"), 'alpha must be a number or "auto"'),
        (("--starts", "0"), "--starts must be at least 1"),
        (("--background", "absent.csv"), "does not exist"),
        (("-o", "rows.xlsx"), "--output must end in"),
        (("--plot", "view.gif"), "--plot must end in .png, .pdf or .svg"),
        (("--report", "view.txt"), "--report must end in .html"),
        (("--report", "absent/view.html"), "--report must lie in an existing folder"),
        (("-o", "absent/view.csv"), "--output must lie in an existing folder"),
        (("--save", "absent/view.imapce"), "--save must lie in an existing folder"),
        (("--plot", "absent/view.png"), "--plot must lie in an existing folder"),
        (("-o", "."), "--output must name a file"),
        (("-o", "rows.csv"), "--output must not replace a file that is read"),
        (("-o", "one.csv", "--save", "one.csv"), "--output and --save must name different files"),
    ],
)
def test_bad_options_in_one_line(
    rows: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(rows.parent)
    before = rows.read_bytes()
    assert told in refusal("embed", "rows.csv", *words)
    assert files_beside(rows) == ["rows.csv"]
    assert rows.read_bytes() == before


@pytest.mark.parametrize("words", [("--components", "1"), ("--seed", "-1"), ("--missing", "zero"), ("--nonsense",)])
def test_options_outside_their_choices(plain: Path, words: tuple[str, ...]) -> None:
    result = run("embed", plain, *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr


def test_every_column_taken_away(rows: Path) -> None:
    everything = ",".join([*FEATURES, "batch", "celltype", "number"])
    assert "at least one feature" in refusal("embed", rows, "--drop", everything)


def test_background_lacks_columns(rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    background, out = tmp_path / "background.csv", tmp_path / "view.csv"
    write_table({name: columns[name] for name in FEATURES[1:]}, background)
    told = refusal("embed", rows, *DROP, "--background", background, "-o", out, "--save", tmp_path / "m.imapce")
    assert "--background must have the columns of DATA" in told
    assert "lacks 'd_0'" in told
    assert files_beside(rows) == ["background.csv", "rows.csv"]


def test_a_fit_that_stops_early_warns_in_one_line(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(self: IMAPCE, *args: Any, **kwargs: Any) -> Any:
        self.max_iter, self.tol = 1, 0.0
        return original(self, *args, **kwargs)

    original = IMAPCE.solve
    monkeypatch.setattr(IMAPCE, "solve", hurried)
    result = run("embed", plain, *QUICK)
    assert result.exit_code == 0
    assert result.stderr.startswith("imapce: warning: ")
    assert result.stderr.count("\n") == 1


def test_interrupted_fit_leaves_nothing(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(IMAPCE, "solve", interrupted)
    result = run("embed", plain, "-o", tmp_path / "view.csv", "--save", tmp_path / "m.imapce")
    assert result.exit_code == 130
    assert (result.stdout, result.stderr) == ("", "imapce: stopped; no file is left half written.\n")
    assert files_beside(plain) == ["plain.csv"]
