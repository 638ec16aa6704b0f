"""What is said of a cluster is the same on every surface, and what pandas finds in the table as it was given.

A planted table with missing cells: the terminal, `imapce info`, reprs, the HTML page and the cards of the app are read
back, number by number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import imapce
from archives import repacked, unpacked
from commands import run, succeed
from conversation import Talk
from imapce import IMAPCE, Exploration
from imapce.app.study import Study
from imapce.app.summary import describe_rows
from imapce.exploration.traits import overlap_in_a_word, overlap_in_percent

GROUP = np.repeat([0, 1, 2], [60, 50, 40])


def passengers() -> pd.DataFrame:
    """Three groups: the third has no deck, half of the second has no age, and those of it who have one are young."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "height": np.array([143.0, 139.6, 139.0])[GROUP] + rng.normal(0.0, 0.3, 150),
            "fare": np.array([40.0, 60.0, 80.0])[GROUP] + rng.normal(0.0, 2.0, 150),
            "age": np.array([30.0, 6.2, 50.0])[GROUP] + rng.normal(0.0, 1.0, 150),
            "children": np.where(GROUP == 0, 0, rng.integers(1, 5, 150)),
            "deck": np.where(GROUP == 0, "A", np.where(rng.random(150) < 0.3, "C", "B")),
            "alone": (GROUP == 1) ^ (rng.random(150) < 0.1),
        }
    )
    table.loc[GROUP == 2, "deck"] = None
    table.loc[(GROUP == 1) & (np.arange(150) % 2 == 0), "age"] = np.nan
    table.loc[3, ["fare", "deck"]] = np.nan
    return table


TABLE = passengers()
ARROW = pa.Table.from_pandas(TABLE, preserve_index=False)


class Claim(NamedTuple):
    """A column, what of it, and the two numbers as they are written."""

    column: str
    what: str
    inside: str
    outside: str


NUMBER = r"(?P<column>\w+) (?P<what>high|low) \((?P<inside>[−\d.,]+) against (?P<outside>[−\d.,]+)\)"
SHARE = r"(?:under \d+|over \d+|\d+) %"
MISSING = rf"(?P<column>\w+) (?P<what>missing) (?P<inside>{SHARE}) \((?P<outside>{SHARE}) elsewhere\)"
LEVEL = rf"(?P<inside>{SHARE}) (?P<column>\w+) = (?P<what>\w+) \((?P<outside>{SHARE}) elsewhere\)"
NO_LEVEL = rf"\bno (?P<column>\w+) = (?P<what>\w+) \((?P<outside>{SHARE}) elsewhere\)"
NEVER = rf"(?P<column>\w+) never (?P<what>missing) \((?P<outside>{SHARE}) elsewhere\)"


def claims(text: str) -> list[Claim]:
    """All that a text says of columns, in its order."""
    text = " ".join(text.replace("\xa0", " ").split())
    found = [one for pattern in (NUMBER, MISSING, LEVEL, NO_LEVEL, NEVER) for one in re.finditer(pattern, text)]
    return [Claim(**{"inside": "0 %", **one.groupdict()}) for one in sorted(found, key=lambda one: one.start())]


def written_as(text: str, value: float) -> bool:
    """Whether a number is what a text says, to the digits it has."""
    text = text.replace("−", "-").replace(",", "")
    if "%" in text:
        percent = 100 * value
        word, _, number = text.removesuffix("%").strip().rpartition(" ")
        if word == "under":
            return 0 < percent < float(number)
        return float(number) < percent < 100 if word == "over" else abs(percent - float(number)) <= 0.5 + 1e-9
    digits = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5 * 10.0**-digits + 1e-9


def truth(claim: Claim, rows: np.ndarray) -> float:
    """What pandas says."""
    column = TABLE[claim.column][rows]
    if claim.what in ("high", "low"):
        return float(column.mean())
    if claim.what == "missing":
        return float(column.isna().mean())
    level = {"yes": True, "no": False}.get(claim.what, claim.what)
    return float((column.dropna() == level).mean())


def assert_true(claim: Claim, rows: np.ndarray) -> None:
    inside, outside = truth(claim, rows), truth(claim, ~rows)
    assert written_as(claim.inside, inside), (claim, inside)
    assert written_as(claim.outside, outside), (claim, outside)
    if claim.what in ("high", "low"):
        assert (inside > outside) == (claim.what == "high"), claim


class Tables(HTMLParser):
    """The tables of a page: for each its heading and its rows, a cell as the list of its lines."""

    def __init__(self, page: str):
        super().__init__()
        self.heading, self.found = "", list[tuple[str, list[list[list[str]]]]]()
        self._inside: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.found.append((self.heading, []))
        elif tag == "tr":
            self.found[-1][1].append([])
        elif tag in ("td", "th"):
            self.found[-1][1][-1].append([])
        self._inside = tag

    def handle_data(self, data: str) -> None:
        text = data.replace("\xa0", " ").strip()
        if self._inside == "h3" and text:
            self.heading = text
        elif text and self.found and self.found[-1][1] and self.found[-1][1][-1]:
            self.found[-1][1][-1][-1].append(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("truth")
    TABLE.to_csv(path / "passengers.csv", index=False)
    return path


@pytest.fixture(scope="module")
def terminal(folder: Path) -> str:
    files = ("--report", folder / "page.html", "--session", folder / "s.imapce", "-o", folder / "rows.csv")
    return succeed("explore", folder / "passengers.csv", "--missing", "mean", *files)


@pytest.fixture(scope="module")
def session(terminal: str, folder: Path) -> Exploration:
    """The session of the command, on the same table."""
    return Exploration.load(folder / "s.imapce", TABLE)


def told_by_the_terminal(text: str) -> dict[int, str]:
    """The sentence of every cluster."""
    block = text.partition("what sets each apart from all other rows\n")[2].partition("means and shares")[0]
    found: dict[int, str] = {}
    number = -1
    for line in block.splitlines():
        if (start := re.match(r"\s*(\d+)  (?=\S)", line)) and not line.startswith("   "):
            number = int(start[1])
            line = line[start.end() :]
        found[number] = f"{found.get(number, '')} {line.strip()}"
    return found


def told_by_the_page(folder: Path, session: Exploration) -> dict[int, str]:
    page = (folder / "page.html").read_text()
    _, rows = Tables(page).found[0]
    (what,) = np.flatnonzero([cell == ["what it is"] for cell in rows[0]])
    return {int(row[0][-1].split()[-1]): " ".join(row[what]) for row in rows[1:]}


def talk_of_the_app() -> Talk:
    fresh = Exploration(TABLE, estimator=IMAPCE(outliers="keep", missing="mean"), random_state=0)
    return Talk(Study("passengers", fresh, table=ARROW))


def told_by_the_app(session: Exploration) -> dict[int, str]:
    talk = talk_of_the_app()
    talk.done("run")
    np.testing.assert_array_equal(talk.exploration.labels_, session.labels_)
    told = {}
    for cluster in session.clusters_:
        talk.ask("select", how="taken", number=cluster.number)
        told[cluster.number] = talk.ask("describe")["words"]
    steps = {one["number"]: one["words"] for step in talk.state["steps"] for one in step["clusters"]}
    assert steps == told
    return told


def test_every_surface_says_the_same_of_a_cluster_and_it_is_true(
    terminal: str, folder: Path, session: Exploration
) -> None:
    surfaces = {
        "terminal": told_by_the_terminal(terminal),
        "info": told_by_the_terminal(succeed("info", folder / "s.imapce")),
        "page": told_by_the_page(folder, session),
        "app": told_by_the_app(session),
        "repr": {cluster.number: repr(cluster) for cluster in session.clusters_},
        "describe": {
            cluster.number: repr(session.describe(session.labels_ == cluster.number)).splitlines()[0]
            for cluster in session.clusters_
        },
        "features": {
            cluster.number: repr([feature for feature in cluster.features if feature.told])
            for cluster in session.clusters_
        },
        "json": {
            one["cluster"]: one["words"]
            for one in json.loads(succeed("info", folder / "s.imapce", "--json"))["clusters"]
        },
    }
    assert len(session.clusters_) == 3
    for cluster in session.clusters_:
        rows = session.labels_ == cluster.number
        expected = claims(cluster.words)
        assert len(expected) == 3
        for claim in expected:
            assert_true(claim, rows)
        for name, told in surfaces.items():
            assert claims(told[cluster.number]) == expected, name
        for feature in cluster.features:
            assert len(claims(feature.words)) == 1, feature
            (claim,) = claims(feature.words)
            assert_true(claim, rows)
            assert (feature.inside, feature.outside) == pytest.approx((truth(claim, rows), truth(claim, ~rows)))


def test_a_proposal_says_of_its_clusters_what_is_said_when_they_are_taken(session: Exploration) -> None:
    fresh = Exploration(TABLE, estimator=IMAPCE(missing="mean"), random_state=0)
    step = fresh.propose()
    (most,) = step.most_distinct
    rows = step.clusters == most
    told = claims(repr(step))
    assert told
    for claim in told:
        assert_true(claim, rows)
    card = describe_rows(Study("passengers", fresh, table=ARROW), rows)
    assert claims(card["words"]) == told == claims(repr(fresh.accept()))
    assert repr(step).startswith("Step 1: ")


def test_the_tables_of_the_page_are_those_of_pandas(terminal: str, folder: Path, session: Exploration) -> None:
    tables = Tables((folder / "page.html").read_text()).found
    names = [cluster.number for cluster in session.clusters_]
    (values,) = [rows for heading, rows in tables if heading == "The same in the units of the table"]
    assert [cell[-1] for cell in values[0][2:]] == [str(number) for number in names]
    sides = [np.ones(150, dtype=bool), *(session.labels_ == number for number in names)]
    seen = set()
    for name, *cells in values[1:]:
        column, _, level = name[0].partition(": ")
        seen.add(name[0])
        for cell, rows in zip(cells, sides, strict=True):
            expected = truth(Claim(column, level or "high", "", ""), rows)
            if np.isnan(expected) or (level not in ("", "missing") and TABLE[column][rows].isna().all()):
                assert cell == ["no value"]
            else:
                assert written_as(cell[0].replace("<", "under ").replace(">", "over "), expected), (name, cell)
    assert {"age", "age: missing", "deck: A", "deck: missing", "alone: yes", "children"} <= seen
    assert not re.search(r"\d[eE]-\d", " ".join(line for row in values for cell in row for line in cell))
    apart = [rows for heading, rows in tables if heading.startswith("What sets it apart")]
    assert len(apart) == len(names)
    for number, rows in zip(names, apart, strict=True):
        assert_rows_are_true(rows, session.labels_ == number)


def assert_rows_are_true(rows: list[list[list[str]]], inside: np.ndarray) -> None:
    """A table of what sets a cluster apart: a column a row, its lines mean, median, levels and missing."""
    of: dict[str, Callable[[pd.Series], float]] = {
        "mean": lambda column: column.mean(),
        "median": lambda column: column.median(),
        "missing": lambda column: column.isna().mean(),
    }
    for (name,), lines, here, there, *_ in rows[1:]:
        for place, line in enumerate(lines):
            for cell, side in ((here, inside), (there, ~inside)):
                column = TABLE[name][side]
                if line in of:
                    expected = float(of[line](column))
                else:
                    level = {"yes": True, "no": False}.get(line, line)
                    expected = float((column.dropna() == level).mean())
                if np.isnan(expected):
                    assert cell[place] in ("–", "no value")
                else:
                    assert written_as(cell[place], expected), (name, line, cell, expected)


def test_the_cards_of_the_app_are_those_of_pandas(session: Exploration) -> None:
    study = Study("passengers", session, table=ARROW)
    kinds = set()
    for cluster in session.clusters_:
        rows = session.labels_ == cluster.number
        card = json.loads(json.dumps(describe_rows(study, rows), allow_nan=False))
        for trait in card["traits"]:
            column = TABLE[trait["column"]]
            missing = trait["missing"] if trait["kind"] == "number" else trait["levels"]
            for level in missing:
                kinds.add((trait["column"], level["name"]))
                for side, chosen in (("inside", rows), ("outside", ~rows)):
                    expected = truth(Claim(trait["column"], level["name"], "", ""), chosen)
                    assert level[side] == pytest.approx(0.0 if np.isnan(expected) else expected, abs=1e-4)
            if trait["kind"] == "number":
                means = column[rows].mean(), column[~rows].mean()
                assert all(written_as(*one) for one in zip(trait["told"], means, strict=True))
                assert (trait["inside"], trait["outside"]) == pytest.approx(means, rel=1e-5, abs=1e-9)
    assert {("deck", "missing"), ("age", "missing"), ("deck", "A"), ("alone", "yes")} <= kinds


def test_steps_count_from_one_and_overlaps_are_shares_everywhere(
    terminal: str, folder: Path, session: Exploration
) -> None:
    frame = session.to_frame()
    steps = sorted(set(frame["step"]))
    assert steps == list(range(1, len(session.steps) + 1))
    assert session.origins_ == [frame["step"][cluster.rows[0]] for cluster in session.clusters_]
    written = pd.read_csv(folder / "rows.csv")
    assert (written["step"] == frame["step"]).all()
    rows = [line.split() for line in terminal.splitlines() if re.match(r"\s+\d+\s+\d+\s+\d+\s", line)]
    facts = json.loads(succeed("info", folder / "s.imapce", "--json"))["clusters"]
    for cluster, line, fact in zip(session.clusters_, rows, facts, strict=True):
        step = int(frame["step"][cluster.rows[0]])
        assert cluster.overlap is not None
        assert 0.0 <= cluster.overlap <= 1.0
        assert line[:3] == [str(cluster.number), str(step), str(cluster.size)]
        assert " ".join(line[3:]).startswith(overlap_in_a_word(cluster.overlap))
        assert (fact["step"], fact["overlap"]) == (step, cluster.overlap)
        assert fact["distinctness"] == overlap_in_a_word(cluster.overlap)
    page = (folder / "page.html").read_text()
    assert "taken in step 1 " in page
    assert "tep 0" not in page


def test_filled_cells_are_told_by_every_surface(terminal: str, folder: Path, session: Exploration) -> None:
    expected = {name: int(count) for name, count in TABLE.isna().sum().items() if count}
    assert session.filled == expected
    words = "deck 41 of 150, age 25, fare 1; filled with the mean of the column to look for groups"
    assert words in " ".join(terminal.split())
    assert words in " ".join((folder / "page.html").read_text().split())
    assert words in " ".join(talk_of_the_app().ask("hello")["notes"])


def test_a_choice_of_many_columns_is_said_to_be_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # Three genes alone would not be seen among as many others in 90 rows.
    wide = pd.DataFrame(rng.normal(size=(90, 40)) + 6 * np.eye(3)[np.arange(90) % 3][:, np.arange(40) % 3])
    wide.columns = [f"gene{place}" for place in range(40)]
    wide.to_csv(tmp_path / "genes.csv", index=False)
    said = succeed("explore", tmp_path / "genes.csv", "--report", tmp_path / "page.html")
    assert "of 40 features at most the 3 that differ most" in " ".join(said.split())
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert "Shown are 24 of 40 columns: the two that set each cluster apart most" in page
    assert re.search(r"What sets it apart: \d+ of 40 columns, those that differ most", page)
    study = Study("genes", Exploration(wide, random_state=0))
    assert describe_rows(study, np.arange(90) % 3 == 0)["choice"] == "10 of 40 columns, those that differ most"


def test_the_second_of_three_groups_is_low_in_the_terminal_as_on_the_page(tmp_path: Path) -> None:
    """What is left after the first group is lower still: the second was called high, and is low among all rows."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [60, 50, 40])
    table = pd.DataFrame(
        {
            "height": np.array([143.0, 139.6, 138.6])[group] + rng.normal(0.0, 0.2, 150),
            "weight": np.array([40.0, 60.0, 60.0])[group] + rng.normal(0.0, 2.0, 150),
            "length": np.array([10.0, 10.0, 20.0])[group] + rng.normal(0.0, 1.0, 150),
        }
    )
    table.to_csv(tmp_path / "three.csv", index=False)
    files = ("--report", tmp_path / "page.html", "--session", tmp_path / "s.imapce")
    said = told_by_the_terminal(succeed("explore", tmp_path / "three.csv", "--clusters", 3, *files))
    session = Exploration.load(tmp_path / "s.imapce", table)
    second = int(session.labels_[group == 1][0])
    assert (session.labels_[group == 1] == second).all()
    means = table.height[group == 1].mean(), table.height[group != 1].mean()
    assert means[0] < means[1]
    (height,) = [one for one in session.clusters_[second].features if one.name == "height"]
    assert height.words.startswith("height low (139.6 against 141.")
    for text in (said[second], *(row.words for row in [session.clusters_[second]])):
        assert "height high" not in text
    assert "height high (139" not in (tmp_path / "page.html").read_text()
    with pytest.raises(AssertionError):
        assert_true(Claim("height", "high", *height.words[12:-1].split(" against ")), group == 1)


def test_older_session_files_open_and_say_less(terminal: str, folder: Path, tmp_path: Path) -> None:
    header, arrays = unpacked(folder / "s.imapce")
    header["version"] = 2
    for step in header["steps"]:
        for cluster in step["clusters"]:
            cluster["features"] = [[one["name"], 1.0, 0.5] for one in cluster["features"]]
            cluster.pop("overlap", None)
    repacked(tmp_path / "old.imapce", header, arrays)
    new, old = (Exploration.load(path, TABLE) for path in (folder / "s.imapce", tmp_path / "old.imapce"))
    for before, after in zip(new.clusters_, old.clusters_, strict=True):
        assert after.overlap == pytest.approx(before.overlap)
        assert (after.words, after.features) == ("", ())
        assert old.describe(after.rows).name == before.words
    assert "not told by this file" in succeed("info", tmp_path / "old.imapce")


def test_the_command_of_the_app_says_that_it_fills(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.app.server.serve", lambda *_, **__: None)
    result = run("app", folder / "passengers.csv")
    assert result.exit_code == 0
    assert "note: missing cells: deck 41 of 150, age 25, fare 1; filled with" in result.stderr


@pytest.mark.parametrize("how", ["log of fare", "ranks", "array with gaps", "on disk"])
def test_whatever_the_rows_are_made_of_the_numbers_are_those_of_the_table(how: str, tmp_path: Path) -> None:
    numbers = TABLE[["height", "fare", "age", "children"]].astype(float)
    settings: dict[str, Any] = {"estimator": IMAPCE(missing="mean", n_starts=2), "random_state": 0}
    if how == "on disk":
        pq.write_table(ARROW, tmp_path / "passengers.parquet")
        exploration = Exploration(imapce.scan(tmp_path / "passengers.parquet"), **settings)
    elif how == "array with gaps":
        exploration = Exploration(numbers.to_numpy(), **settings)
    else:
        transform = {"fare": "log"} if how == "log of fare" else dict.fromkeys(numbers, "rank")
        exploration = Exploration(TABLE, transform=transform, **settings)
    rows = GROUP == 1
    exploration.accept(mask=rows)
    (cluster,) = exploration.clusters_
    assert len(cluster.features) >= 3
    for feature in cluster.features:
        (claim,) = claims(feature.words)
        if how == "array with gaps":
            claim = claim._replace(column=numbers.columns[int(claim.column[1:])])
        assert_true(claim, rows)
    assert exploration.filled == {
        name if how != "array with gaps" else f"x{list(numbers).index(name)}": int(count)
        for name, count in (numbers if how == "array with gaps" else TABLE).isna().sum().items()
        if count
    }


def test_overlaps_of_the_paper_are_shares_of_the_nearest_neighbour() -> None:
    X = np.random.default_rng(0).normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
    exploration = Exploration(X, method="paper", random_state=0)
    step = exploration.propose()
    assert (step.distinctness > 1).all()
    assert ((step.overlap >= 0) & (step.overlap <= 1)).all()
    taken = exploration.accept().clusters[0]
    assert taken.overlap == step.overlap[step.numbers.tolist().index(taken.number)]
    assert f"({overlap_in_percent(taken.overlap)} overlap)" in repr(taken)
