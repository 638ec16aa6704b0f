"""The command line: every command and option, every bad input as one line, and nothing left behind by a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import imapce
from commands import refusal, run, succeed
from imapce import datasets
from imapce.datasets import catalogue
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import load_model
from imapce.tables.files import read_table, write_table

FEATURES = [f"d_{place}" for place in range(10)]


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    data = datasets.make_synthetic(120)
    return {
        **dict(zip(FEATURES, data.X.T, strict=True)),
        "batch": [("old", "new")[code] for code in data.labels["batch"]],
        "celltype": [("a", "b", "c")[code] for code in data.labels["celltype"]],
        "number": data.labels["combined_cluster"],
    }


@pytest.fixture
def rows(tmp_path: Path, columns: dict[str, Any]) -> Path:
    """A CSV file in an otherwise empty folder."""
    path = tmp_path / "rows.csv"
    write_table(columns, path)
    return path


@pytest.fixture
def plain(tmp_path: Path, columns: dict[str, Any]) -> Path:
    """The features alone."""
    path = tmp_path / "plain.csv"
    write_table({name: columns[name] for name in FEATURES}, path)
    return path


def files_beside(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


DROP = ("--drop", "batch,celltype,number")
QUICK = ("--starts", "3")


# --- embed -------------------------------------------------------------------------------------------------------


def test_embed_writes_labels_row_number_and_axes(rows: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "view.parquet", tmp_path / "view.png"
    told = succeed(
        *("embed", rows, "--attributes", "d_0,d_1, d_2,d_3", "--mu", "200", "--labels", "celltype", *QUICK),
        *("--drop", "batch,number", "-o", out, "--plot", plot),
    )
    table = read_table(out)
    assert table.column_names == ["celltype", "row", "imapce0", "imapce1"]
    assert table.column("row").to_pylist() == list(range(120))
    assert plot.read_bytes().startswith(b"\x89PNG")
    for words in ("4 columns are known: d_0, d_1, d_2, d_3", "strongest features", "Converged", "view.parquet"):
        assert words in told


def test_the_report_of_embed_says_why_the_view_was_chosen_where_it_was(rows: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    words = ("embed", rows, "--attributes", "d_0,d_1", "--labels", "celltype", "--drop", "batch,number", *QUICK)
    assert "report written" in succeed(*words, "--report", page)
    chosen = page.read_text(encoding="utf-8")
    for told in (
        "View of rows.csv",
        "Why this view",
        "the one with the highest score was chosen",
        "2 columns are known",
    ):
        assert told in chosen
    assert chosen.count("data:image/png;base64,") == 4
    succeed(*words, "--alpha", "1", "--mu", "paper", "--report", page)
    given = page.read_text(encoding="utf-8")
    assert "Why this view" not in given
    assert given.count("data:image/png;base64,") == 3


def test_embed_agrees_with_the_library(rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    out = tmp_path / "view.parquet"
    succeed(
        *("embed", rows, *DROP, "--alpha", "0.5", "--mu", "paper", "--center-only", *QUICK, "--seed", "5"),
        *("--attributes", "d_0", "--components", "3", "-o", out),
    )
    table = pa.table({name: columns[name] for name in FEATURES})
    model = IMAPCE(3, alpha=0.5, mu="paper", standardize=False, n_starts=3, random_state=5)
    view = model.fit_transform(table, prior=imapce.Attributes(["d_0"]))
    written = read_table(out)
    stacked = np.column_stack([written.column(f"imapce{axis}") for axis in range(3)])
    np.testing.assert_allclose(stacked, view, rtol=0, atol=1e-12)


def test_alpha_by_the_ratio_is_told_with_its_rule(plain: Path, tmp_path: Path) -> None:
    write_table(read_table(plain).slice(0, 60), tmp_path / "background.csv")
    told = succeed("embed", plain, "--background", tmp_path / "background.csv", "--alpha", "ratio", *QUICK)
    assert "(rule 'ratio')" in told
    assert "ratio" in succeed("embed", "--help")


def test_without_output_only_the_summary(plain: Path) -> None:
    told = succeed("embed", plain, *QUICK)
    assert "no file written" in told
    assert "nothing, the view shows the strongest clusters" in told
    assert files_beside(plain) == ["plain.csv"]


def test_known_values_of_one_column_are_one_subset(rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    out = tmp_path / "view.csv"
    told = succeed(
        *("embed", rows, "--known", "celltype=a", "--known", "celltype=b", "--drop", "batch,number", *QUICK, "-o", out)
    )
    count = sum(value in "ab" for value in columns["celltype"])
    assert f"{count} of 120 rows are known, with celltype = a or b" in told
    assert read_table(out).column_names == ["celltype", "row", "imapce0", "imapce1"]


def test_all_priors_combine(rows: Path, plain: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--attributes", "d_0", "--background", plain, "--known", "batch=old", "--known", "number=4"),
        *("--labels", "celltype", *QUICK, "-o", tmp_path / "view.tsv", "--plot", tmp_path / "view.svg"),
    )
    flat = " ".join(told.split())
    assert "1 column is known: d_0" in flat
    assert "120 background rows are known: plain.csv" in flat
    assert "with batch = old" in flat
    assert "with number = 4" in flat
    header = (tmp_path / "view.tsv").read_text().splitlines()[0].replace('"', "").split("\t")
    assert header == ["celltype", "batch", "number", "row", "imapce0", "imapce1"]


def test_names_with_commas_and_equal_signs(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "odd.csv"
    write_table({"a,b": columns["d_0"], "k=1": columns["batch"], "c": columns["d_4"], "d": columns["d_5"]}, path)
    told = succeed("embed", path, "--attributes", '"a,b"', "--known", "k=1=old", *QUICK)
    assert "known: a,b" in told
    assert "k=1 = old" in " ".join(told.split())


def test_users_columns_are_never_overwritten(tmp_path: Path, columns: dict[str, Any]) -> None:
    path, out = tmp_path / "taken.parquet", tmp_path / "view.parquet"
    kept = {name: columns[name] for name in FEATURES}
    write_table(kept | {"imapce0": columns["batch"], "row": columns["celltype"]}, path)
    succeed("embed", path, "--labels", "imapce0", "--known", "row=a", *QUICK, "-o", out)
    table = read_table(out)
    assert table.column_names == ["imapce0", "row", "row_1", "imapce0_1", "imapce1"]
    assert table.column("imapce0").to_pylist() == columns["batch"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "arrow", "feather"])
def test_tables_in_every_format_give_one_view(tmp_path: Path, columns: dict[str, Any], suffix: str) -> None:
    features = {name: columns[name] for name in FEATURES}
    path = tmp_path / f"rows.{suffix}"
    if suffix.endswith(".gz"):
        import gzip

        write_table(features, tmp_path / "rows.csv")
        path.write_bytes(gzip.compress((tmp_path / "rows.csv").read_bytes()))
    else:
        write_table(features, path)
    succeed("embed", path, *QUICK, "-o", tmp_path / "view.npy")
    expected = IMAPCE(n_starts=3, random_state=0).fit_transform(pa.table(features))
    np.testing.assert_allclose(np.load(tmp_path / "view.npy"), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["npy", "npz", "sparse"])
def test_arrays_take_positions(tmp_path: Path, columns: dict[str, Any], kind: str) -> None:
    matrix = np.column_stack([columns[name] for name in FEATURES])
    path = tmp_path / ("rows.npy" if kind == "npy" else "rows.npz")
    if kind == "npy":
        np.save(path, matrix)
    elif kind == "npz":
        np.savez(path, matrix)
    else:
        sparse.save_npz(path, sparse.csr_matrix(matrix))
    model, out, again = tmp_path / "m.imapce", tmp_path / "a.npy", tmp_path / "b.npy"
    assert "2 columns are known: 0, 1" in succeed(
        "embed", path, "--attributes", "0,1", *QUICK, "-o", out, "--save", model
    )
    succeed("transform", model, path, "-o", again)
    np.testing.assert_allclose(np.load(out), np.load(again), rtol=0, atol=1e-12)
    assert "no column names; got 'size'" in refusal("embed", path, "--attributes", "size")
    for option, word in (("--known", "a=1"), ("--labels", "a"), ("--drop", "a")):
        assert f"{option} needs column names" in refusal("embed", path, option, word)


# --- missing values ----------------------------------------------------------------------------------------------


@pytest.fixture
def gaps(tmp_path: Path, columns: dict[str, Any]) -> Path:
    holed = {name: np.array(columns[name], dtype=float) for name in FEATURES}
    holed["d_2"][[3, 50]] = np.nan
    kinds: list[Any] = list(columns["celltype"])
    kinds[7] = None
    path = tmp_path / "gaps.csv"
    write_table(holed | {"celltype": kinds}, path)
    return path


def test_missing_values_are_refused_by_name(gaps: Path) -> None:
    told = refusal("embed", gaps, *QUICK, "-o", gaps.parent / "view.csv")
    assert "'d_2' has 2" in told
    assert 'missing="mean"' in told
    assert files_beside(gaps) == ["gaps.csv"]


def test_a_model_fills_new_rows_as_it_filled_its_own(gaps: Path, tmp_path: Path) -> None:
    model, out, again = tmp_path / "m.imapce", tmp_path / "a.parquet", tmp_path / "b.parquet"
    succeed("embed", gaps, "--missing", "mean", *QUICK, "-o", out, "--save", model)
    first = read_table(out)
    # Three rows alone: were they filled with their own means, they would lie elsewhere.
    few = tmp_path / "few.parquet"
    write_table(read_table(gaps).take([3, 7, 9]), few)
    succeed("transform", model, few, "-o", again)
    for axis in ("imapce0", "imapce1"):
        expected = first.column(axis).to_numpy()[[3, 7, 9]]
        np.testing.assert_allclose(read_table(again).column(axis).to_numpy(), expected, rtol=0, atol=1e-12)
    assert load_model(model).missing == "mean"


def test_arrays_are_filled_too(tmp_path: Path, columns: dict[str, Any]) -> None:
    matrix = np.column_stack([columns[name] for name in FEATURES])
    matrix[5, 2] = np.nan
    path, model, out, again = (tmp_path / name for name in ("rows.npy", "m.imapce", "a.npy", "b.npy"))
    np.save(path, matrix)
    assert "'x2' has NaN" in refusal("embed", path, *QUICK)
    succeed("embed", path, "--background", path, "--missing", "mean", *QUICK, "-o", out, "--save", model)
    np.save(path, matrix[4:7])
    succeed("transform", model, path, "-o", again)
    np.testing.assert_allclose(np.load(again), np.load(out)[4:7], rtol=0, atol=1e-12)
    matrix[:, 2] = np.nan
    np.save(path, matrix)
    assert "'x2' has NaN" in refusal("embed", path, "--missing", "mean")


# --- bad input ---------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path: Path, columns: dict[str, Any]) -> None:
    assert "does not exist" in refusal("embed", tmp_path / "absent.csv")
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert "which is empty" in refusal("embed", empty)
    cut = tmp_path / "cut.parquet"
    write_table({name: columns[name] for name in FEATURES}, cut)
    cut.write_bytes(cut.read_bytes()[:-40])
    assert "cannot be read" in refusal("embed", cut)
    assert "path must end in" in refusal("embed", tmp_path / "rows.xlsx")
    headless = tmp_path / "no_rows.csv"
    headless.write_text("a,b,c\n")
    assert "0 rows" in refusal("embed", headless)


def test_text_columns_are_named(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "text.csv"
    write_table({"d_0": columns["d_0"], "d_1": columns["d_1"], "note": [f"row {i}" for i in range(120)]}, path)
    assert "'note' is free text" in refusal("embed", path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--attributes", "d_00"), "--attributes must name a column of DATA, got 'd_00': did you mean 'd_0'"),
        (("--labels", "cell_type"), "did you mean 'celltype'?"),
        (("--drop", "bach"), "did you mean 'batch'?"),
        (("--known", "bach=old"), "--known must name a column of DATA, got 'bach': did you mean 'batch'?"),
        (("--known", "batch"), "--known must be COLUMN=VALUE"),
        (("--known", "batch=odl"), "value must occur in column 'batch', got 'odl': did you mean 'old'"),
        (("--known", "number=x"), "must be a number"),
        (("--attributes", "batch", "--drop", "batch"), "name it in one option only"),
        (("--mu", "large"), "mu must be a number"),
        (("--mu", "-1"), "mu must be finite and not negative"),
        (("--alpha", "nan"), "alpha must be finite"),
        (("--alpha", "rato"), 'alpha must be a number, "auto" or "ratio"'),
        (("--starts", "0"), "n_starts must be at least 1"),
        (("--background", "absent.csv"), "does not exist"),
        (("-o", "rows.xlsx"), "path must end in"),
        (("--plot", "view.gif"), "path must end in .png, .pdf or .svg"),
        (("--report", "view.txt"), "path must end in .html"),
        (("--report", "absent/view.html"), "path must lie in an existing folder"),
        (("-o", "absent/view.csv"), "path must lie in an existing folder"),
        (("--save", "absent/view.imapce"), "path must lie in an existing folder"),
        (("--plot", "absent/view.png"), "path must lie in an existing folder"),
        (("-o", "."), "path must name a file"),
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


@pytest.mark.parametrize("words", [("--components", "4"), ("--seed", "-1"), ("--missing", "zero"), ("--nonsense",)])
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
    assert "Samples(background) must have" in told
    assert "lacks 'd_0'" in told
    assert files_beside(rows) == ["background.csv", "rows.csv"]


def test_a_fit_that_stops_early_warns_in_one_line(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(self: IMAPCE, *args: Any, **kwargs: Any) -> Any:
        self.max_iter, self.tol = 1, 0.0
        return original(self, *args, **kwargs)

    original = IMAPCE.fit
    monkeypatch.setattr(IMAPCE, "fit", hurried)
    result = run("embed", plain, *QUICK)
    assert result.exit_code == 0
    assert result.stderr.startswith("imapce: warning: ")
    assert result.stderr.count("\n") == 1


def test_interrupted_fit_leaves_nothing(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(IMAPCE, "fit", interrupted)
    result = run("embed", plain, "-o", tmp_path / "view.csv", "--save", tmp_path / "m.imapce")
    assert result.exit_code == 130
    assert result.stdout == result.stderr == ""
    assert files_beside(plain) == ["plain.csv"]


# --- transform and info ------------------------------------------------------------------------------------------


@pytest.fixture
def model(rows: Path, tmp_path: Path) -> Path:
    path = tmp_path / "view.imapce"
    succeed(
        *("embed", rows, "--attributes", "d_0,d_1", "--labels", "celltype", "--drop", "batch,number", *QUICK),
        *("--save", path, "-o", tmp_path / "first.parquet"),
    )
    return path


def test_transform_agrees_with_embed_and_carries_other_columns(model: Path, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "second.parquet"
    told = succeed("transform", model, rows, "-o", out, "--plot", tmp_path / "second.pdf")
    first, second = read_table(tmp_path / "first.parquet"), read_table(out)
    assert second.column_names == ["batch", "celltype", "number", "row", "imapce0", "imapce1"]
    for axis in ("imapce0", "imapce1"):
        np.testing.assert_allclose(first.column(axis), second.column(axis), rtol=0, atol=1e-12)
    assert "batch, celltype, number" in told
    assert (tmp_path / "second.pdf").read_bytes().startswith(b"%PDF")


def test_transform_takes_columns_in_any_order(model: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    shuffled = tmp_path / "shuffled.parquet"
    write_table({name: columns[name] for name in reversed(FEATURES)}, shuffled)
    succeed("transform", model, shuffled, "-o", tmp_path / "second.parquet")
    first, second = read_table(tmp_path / "first.parquet"), read_table(tmp_path / "second.parquet")
    np.testing.assert_allclose(first.column("imapce0"), second.column("imapce0"), rtol=0, atol=1e-12)
    assert "no file written" in succeed("transform", model, shuffled)


def test_transform_refuses_what_does_not_fit(model: Path, rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    lacking = tmp_path / "lacking.csv"
    write_table({name.replace("d_3", "d_33"): columns[name] for name in FEATURES}, lacking)
    told = refusal("transform", model, lacking, "-o", tmp_path / "no.csv")
    assert "the 10 columns that the model reads, and it lacks 'd_3': did you mean 'd_33'" in told
    nameless = tmp_path / "nameless.npy"
    np.save(nameless, np.zeros((3, 10)))
    assert "the model reads columns by name" in refusal("transform", model, nameless)
    assert "must not replace a file that is read" in refusal("transform", model, rows, "-o", rows)
    assert "not a file" in refusal("transform", tmp_path / "absent.imapce", rows)
    assert not (tmp_path / "no.csv").exists()


def test_damaged_models_are_refused(model: Path, rows: Path) -> None:
    whole = model.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"not a zip", b""):
        model.write_bytes(damaged)
        refusal("info", model)
        refusal("info", model, "--json")
        refusal("transform", model, rows)


def test_info_in_words_and_in_json(model: Path) -> None:
    told = succeed("info", model)
    for words in ("format version", "n_starts=3", "strongest features", "10 (d_0, d_1", "Converged"):
        assert words in told
    facts = json.loads(succeed("info", model, "--json"))
    fitted = load_model(model)
    assert facts["format_version"] == 1
    assert facts["columns"] == FEATURES
    assert facts["parameters"]["random_state"] == 0
    assert facts["fitted"]["objective"] == fitted.objective_
    assert len(facts["optima"]) == len(fitted.optima_)
    shares = [entry["share"] for entry in facts["strongest_features"]]
    assert len(shares) == 8
    assert shares == sorted(shares, reverse=True)
    assert fitted.verbose is False


# --- datasets and demo -------------------------------------------------------------------------------------------


def test_datasets_lists_without_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAPCE_DATA", str(tmp_path))
    monkeypatch.setenv("IMAPCE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "adult.data.gz").touch()
    entries = {entry["name"]: entry for entry in json.loads(succeed("datasets", "--json"))}
    assert entries["digits"]["on_disk"]
    assert entries["adult_full"]["on_disk"]
    assert not entries["mnist"]["on_disk"]
    told = succeed("datasets")
    assert all(name in told for name in entries)
    assert not (tmp_path / "cache").exists()


def test_the_catalogue_tells_what_the_data_sets_say() -> None:
    made = {"synthetic": datasets.make_synthetic, "digits": datasets.load_digits}
    read = {
        "synthetic_paper": datasets.load_synthetic_paper,
        "adult_paper": datasets.fetch_adult,
        "image_segmentation": datasets.fetch_image_segmentation,
    }
    for entry in catalogue.CATALOGUE:
        load = made.get(entry.name) or (read.get(entry.name) if entry.is_on_disk() else None)
        if load is not None:
            data = load()
            assert (entry.rows, entry.columns) == data.X.shape
            assert (entry.name, entry.source, entry.licence) == (data.name, data.source, data.licence)


def test_demo_prints_scores_and_writes_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAPCE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("IMAPCE_CACHE", str(tmp_path / "none"))
    out = tmp_path / "tour"
    told = succeed("demo", "--out", out)
    assert "mixing" in told
    assert "the zeros" in told
    names = sorted(path.name for path in out.iterdir())
    kinds = ("comparison", "loadings", "trace")
    assert names == sorted(
        [*(f"{case}-{kind}.png" for case in ("synthetic", "digits") for kind in kinds), "report.html"]
    )
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 6
    assert 'src="http' not in page
    blocked = tmp_path / "file"
    blocked.touch()
    assert "must name a folder" in refusal("demo", "--out", blocked)
    assert "existing folder" in refusal("demo", "--out", tmp_path / "absent" / "tour")


# --- the command itself ------------------------------------------------------------------------------------------


def test_version_and_help() -> None:
    assert succeed("--version") == f"imapce {imapce.__version__}\n"
    for command in ("embed", "compare", "transform", "info", "datasets", "demo"):
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


def test_help_needs_no_numerical_library() -> None:
    source = str(Path(imapce.__file__).parents[1])
    check = (
        "import sys, imapce.cli; print([m for m in ('sklearn', 'pyarrow', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", check],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
