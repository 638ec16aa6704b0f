"""The paper's numbers beside ours, from the files of results: as tables, and those that are lower with the reason.

A row of these files is named "data · method · score". Ours are at the paper's setting; what nothing set gives stands
beside each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from experiments.result_files import Cell, PageError, read_figures
from experiments.table_blocks import Block

OURS, AUTOMATIC, SEARCH = "IMAPCE", "IMAPCE, automatic", "IMAPCE, the authors' search"
EXPERIMENTS = (
    *("table1", "adult", "mnist_fmnist", "cifar_fmnist", "image_segmentation", "mnist_exploration"),
    "ablation_mu",
)
EXPLORATIONS = ("image_segmentation", "mnist_exploration")
UINT8 = " as uint8"
BELOW = 0.02
# What stands in every row and is no score of its own.
ALSO = ("paper", "ours", "sd", "runs", "seconds")
# Kept for the figures of an exploration; the union is ours and has no number beside it.
JACCARD, NMI = "Jaccard, authors'", "NMI"

Figures = Mapping[str, str]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Number:
    """One number the paper prints of its method, with ours."""

    experiment: str
    key: Key
    paper: float
    ours: float
    sd: float
    automatic: float | None
    reason: str

    @property
    def is_below(self) -> bool:
        """Lower by more than 0.02, by the figures as they are printed."""
        return round(self.paper - self.ours, 3) > BELOW


class Results:
    """The rows of all experiments of the paper."""

    def __init__(self, folder: Path):
        self.folder = folder

    @cached_property
    def by_experiment(self) -> dict[str, dict[Key, Figures]]:
        return {name: self.rows(name) for name in EXPERIMENTS}

    def rows(self, name: str) -> dict[Key, Figures]:
        """The rows of one experiment; none where it was not run."""
        path = self.folder / f"{name}.csv"
        return {_key(row): figures for row, figures in read_figures(path)[name].items()} if path.exists() else {}

    def ours(self, key: Key) -> float | None:
        """Our figure of a row, in whichever experiment it is."""
        row = self._row(key)
        return float(row["ours"]) if row else None

    def _row(self, key: Key) -> Figures:
        return next((rows[key] for rows in self.by_experiment.values() if key in rows), {})

    def numbers(self) -> Iterator[Number]:
        """All the paper prints of its own method, table by table; what two of its tables have is there twice."""
        for name, rows in self.by_experiment.items():
            for key, figures in rows.items():
                if "paper" in figures and _is_the_papers(key):
                    paper, ours, sd = (float(figures[one]) for one in ("paper", "ours", "sd"))
                    automatic = self.ours((key[0], AUTOMATIC, key[2]))
                    yield Number(name, key, paper, ours, sd, automatic, self.reason(key, paper, ours, sd))

    def reason(self, key: Key, paper: float, ours: float, sd: float) -> str:
        """Why ours is lower, as far as these results tell."""
        data, method, score = key
        ways = {
            "the authors' sums in uint8": (data + UINT8, method, score),
            "the authors' search": (data, method.replace(OURS, SEARCH, 1), score),
            "the authors' sums in uint8 and search": (data + UINT8, method.replace(OURS, SEARCH, 1), score),
        }
        found = {way: self._row(other) for way, other in ways.items() if self._row(other)}
        for way, row in found.items():
            if round(paper - float(row["ours"]), 3) <= BELOW:
                return f"{way}: {float(row['ours']):.3f}"
        for way, row in found.items():
            # One start ends in one basin or another, from draw to draw.
            mean, spread = float(row["ours"]), float(row["sd"])
            if "search" in way and round(paper - mean - spread, 3) <= BELOW:
                return f"{way}, within a standard deviation of its draws: {mean:.3f} ± {spread:.3f}"
        if paper - ours <= sd:
            return "within a standard deviation of our seeds or draws"
        accuracy = self._paper((data, method, score.replace("F1", "accuracy")))
        if "F1" in score and accuracy is not None and paper - accuracy > BELOW:
            return f"the paper prints an accuracy of {accuracy:.2f} beside this F1"
        if "recall" in score:
            return "the paper's recall is that of the class of the first test row, another from split to split"
        return "not explained"

    def _paper(self, key: Key) -> float | None:
        rows = (rows[key] for rows in self.by_experiment.values() if key in rows and "paper" in rows[key])
        return next((float(row["paper"]) for row in rows), None)


def _key(row: str) -> Key:
    data, method, score = row.split(" · ")
    return data, method, score


def _is_the_papers(key: Key) -> bool:
    """Of its own method, at its setting, on the right sums, in the scale of its text; no mean of other numbers."""
    data, method, _ = key
    if data.endswith((UINT8, "average")) or data.startswith("Image Segmentation, centred"):
        return False
    return method == OURS or method.startswith(f"{OURS}, μ")


def summary(results: Results) -> Block:
    """How many of the paper's numbers are reached, by table."""
    every = list(results.numbers())
    rows: list[list[Cell]] = []
    for name in (*results.by_experiment, "all"):
        these = [one for one in every if name in (one.experiment, "all")]
        below = [one for one in these if one.is_below]
        automatic = [one for one in these if one.automatic is not None]
        lower = sum(round(one.paper - (one.automatic or 0.0), 3) > BELOW for one in automatic)
        recall = sum("recall" in one.key[2] for one in below)
        rows.append([name, len(these), len(below), recall, lower])
    head = ("experiment", "numbers of the paper", "ours lower by more than 0.02", "of these recall", "automatic lower")
    return Block("The paper's numbers", head, rows)


def below(results: Results) -> Block:
    """The numbers of ours that are lower by more than 0.02, and why."""
    rows: list[list[Cell]] = [
        [" · ".join(one.key), f"{one.paper:.2f}", f"{one.ours:.3f} ± {one.sd:.3f}", one.automatic, one.reason]
        for one in results.numbers()
        if one.is_below
    ]
    return Block("Lower than the paper's", ("number", "paper", "ours", "automatic", "reason"), rows)


def compared(results: Results, name: str, among: str = "") -> Block:
    """One table of the paper: a line for each method on each data, "paper / ours ± sd / automatic" for each score."""
    rows = {key: figures for key, figures in results.rows(name).items() if among in key[0]}
    scores = list(dict.fromkeys(score for _, _, score in rows))
    beside = list(dict.fromkeys(column for row in rows.values() for column in row if column not in ALSO))
    made: list[list[Cell]] = []
    for data, method in dict.fromkeys((data, method) for data, method, _ in rows):
        found = {score: rows[data, method, score] for score in scores if (data, method, score) in rows}
        any_of = next(iter(found.values()))
        cells = [_three(results, (data, method, score), found.get(score)) for score in scores]
        also = [float(any_of[one]) if one in any_of else None for one in beside]
        made.append([f"{data} · {method}", *cells, *also, any_of["runs"]])
    printed = "paper / ours" if any("paper" in row for row in rows.values()) else "ours"
    ways = f"{printed} / automatic" if name in EXPERIMENTS else printed
    return Block(name, ("data · method", *(f"{score}: {ways}" for score in scores), *beside, "runs"), made)


def explored(results: Results, name: str) -> Block:
    """The paper's explorations: a line for each class known, Jaccard and NMI of every method."""
    rows = {key: figures for key, figures in results.rows(name).items() if key[2] in (JACCARD, NMI)}
    methods = list(dict.fromkeys(method for _, method, _ in rows))
    made: list[list[Cell]] = [
        [data, *(_pair(rows.get((data, method, score))) for method in methods for score in (JACCARD, NMI))]
        for data in dict.fromkeys(data for data, _, _ in rows)
    ]
    head = ("data", *(f"{method}: {score}" for method in methods for score in ("Jaccard", "NMI")))
    return Block(name, head, made)


def tuned(results: Results, count: int = 5) -> Block:
    """The best settings of ct-SNE and Fair-NeRV, by the sum over the tasks."""
    rows = results.rows("tuning")
    tasks = [column for column in next(iter(rows.values()), {}) if column not in ALSO]
    made: list[list[Cell]] = []
    for wanted in dict.fromkeys(data for data, _, _ in rows):
        # They are written best first.
        best = [(key, figures) for key, figures in rows.items() if key[0] == wanted][:count]
        made += [[key[1], float(row["ours"]), *(float(row[task]) for task in tasks)] for key, row in best]
    return Block("tuning", (f"setting (the best {count} of each)", "sum", *tasks), made)


def page_text(folder: Path, options: list[str]) -> str:
    """What a marker of a page asks for, as Markdown: `summary`, `below`, `compared NAME`, `explored NAME`, `tuned`."""
    results = Results(folder)
    asked, *rest = options
    way, _, name = asked.partition(" ")
    among = rest[0].removeprefix("with ") if rest else ""
    ways = {
        "summary": lambda: summary(results),
        "below": lambda: below(results),
        "compared": lambda: compared(results, name, among),
        "explored": lambda: explored(results, name),
        "tuned": lambda: tuned(results),
    }
    if way not in ways:
        raise PageError(f"{way!r} is no table of the paper; there are {', '.join(ways)}")
    return ways[way]().table()


def _three(results: Results, key: Key, figures: Figures | None) -> str:
    if figures is None:
        return "–"
    ours = f"{float(figures['ours']):.3f}"
    if float(figures["sd"]) >= 0.0005:
        ours += f" ± {float(figures['sd']):.3f}"
    paper = f"{float(figures['paper']):.2f}" if "paper" in figures else "–"
    automatic = results.ours((key[0].removesuffix(UINT8), AUTOMATIC, key[2])) if _is_ours(key) else None
    return f"{paper} / {ours}" + (f" / {automatic:.3f}" if automatic is not None else "")


def _is_ours(key: Key) -> bool:
    return key[1].startswith(OURS) and not key[1].startswith(AUTOMATIC)


def _pair(figures: Figures | None) -> str:
    if figures is None:
        return "–"
    ours = f"{float(figures['ours']):.3f}"
    return f"{float(figures['paper']):.2f} / {ours}" if "paper" in figures else ours
