"""A guided tour on data whose answer is known: views with and without what is known, their scores, a report.

run_tour("imapce-demo", seed=0)  # writes figures and report.html
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.table import Table
from sklearn.cluster import KMeans

from imapce import datasets
from imapce.common.whole_files import folder_target, whole_folder
from imapce.common.work import Tell
from imapce.datasets import downloads as data_files
from imapce.estimators.imapce import IMAPCE
from imapce.metrics.readback import residual_predictability
from imapce.metrics.scores import nls_ceiling, normalized_laplacian_score, normalized_mutual_information
from imapce.plotting import Section, path_caption, plot_comparison, plot_loadings, plot_path, save_figure, write_report
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes, Subset

HEADER = ["data", "known", "mixing of the known", "known read back", "structure found", "cluster agreement", "seconds"]
NOT_ASKED = "–"
KNOWN_COLUMNS = 4
KNOWN_DIGIT = 0
CASES = ("synthetic", "synthetic-paper", "digits")
FIGURES = ("comparison", "loadings", "path")
OWN_FILES = (*(f"{case}-{figure}.png" for case in CASES for figure in FIGURES), "report.html")

READING_THE_SCORES = """\
Mixing of the known is the share of a point's neighbours that belong to another batch (the normalised Laplacian \
score). Its ceiling is what chance gives: at the ceiling, a place in the picture says nothing about the batch.

Known read back is how often a classifier guesses the batch from a place in the picture (balanced accuracy; the \
better of a linear one and 15 nearest neighbours). It should fall to chance, which stands beside it.

Structure found is how often 15 nearest neighbours guess the hidden groups right: the cell types, or the digits that \
are not known yet (balanced accuracy). It should stay high or rise. A picture of pure noise would do well on the first \
two scores, so they mean nothing without this one.

Cluster agreement compares k-means clusters of the digits that are not known yet with their true classes (normalised \
mutual information, from 0 to 1).

Seconds is the time of the fit, all starting points included."""


@dataclass(frozen=True)
class Case:
    """One data set of the tour: what is told about it, what hides in it, and how to draw it.

    `known_groups` is a grouping that a view should mix; None where the knowledge is about rows instead.
    """

    file_name: str
    title: str
    story: str
    known_words: str
    data: datasets.Dataset
    prior: Prior
    hidden: NDArray[Any]
    hidden_name: str
    known_groups: NDArray[Any] | None = None
    known_rows: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Scores:
    """How one view does; None where a question does not apply."""

    seconds: float
    structure: float
    mixing: float | None = None
    read_back: float | None = None
    chance: float | None = None
    agreement: float | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """A case with its two views, scored and drawn."""

    case: Case
    without: Scores
    informed: Scores
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)


# Of the whole time: 2.8 of 8.5 s of CPU time; the rest draws nine figures, each for its file and for the page.
FITTING = 1 / 3


def run_tour(folder: str, seed: int = 0, tell: Tell | None = None) -> tuple[list[Outcome], list[Path]]:
    """Fit, score and draw every case, then write figures and report; the outcomes, and the files, the report last.

    >>> run_tour("imapce-demo")[1][-1]                               # doctest: +SKIP
    PosixPath('imapce-demo/report.html')
    """
    began = time.perf_counter()
    tell = tell or (lambda words, share: None)
    folder_target(folder, OWN_FILES)
    cases, outcomes = tour_cases(seed), []
    for place, case in enumerate(cases):
        tell(f"fitting, scoring and drawing: {case.title}", FITTING * place / len(cases))
        outcomes.append(explored(case, seed))
    tell("writing figures and report", FITTING)
    with whole_folder(folder, OWN_FILES) as beside:
        names = [path.name for path in _write(outcomes, beside, time.perf_counter() - began)]
    return outcomes, [Path(folder) / name for name in names]


def tour_cases(seed: int) -> list[Case]:
    """The cases of the tour: generated data, the paper's own where its file is on disk, and handwritten digits."""
    cases = [_batches(datasets.make_synthetic(random_state=seed), "synthetic", "Two batches hide three cell types")]
    if data_files.find((data_files.SYNTHETIC_PAPER_FILE.relative_path,)) is not None:
        cases.append(_batches(datasets.load_synthetic_paper(), "synthetic-paper", "The same with the paper's own file"))
    digits = datasets.load_digits()
    known = digits.labels["class"] == KNOWN_DIGIT
    story = (
        f"{len(digits.X):,} handwritten digits of 8 x 8 pixels. Suppose you have already looked at the zeros and know "
        "them. Telling this to the fit does two things: variance among the zeros no longer counts as worth showing, "
        "and clusters are looked for among the other digits only.\n\n"
        "Left: the view that knows nothing. Right: the view that knows the zeros, which are drawn in grey in both. "
        "Two straight axes cannot hold nine digits apart, and one known class changes such a view only a little: "
        "compare the scores before you trust your eyes."
    )
    cases.append(
        Case(
            file_name="digits",
            title="Digits of which the zeros are known",
            story=story,
            known_words="the zeros",
            data=digits,
            prior=Subset(known),
            hidden=digits.labels["class_name"],
            hidden_name="digit",
            known_rows=known,
        )
    )
    return cases


def explored(case: Case, seed: int) -> Outcome:
    """Fit a case with and without its prior, score both views and draw them."""
    table = pa.table(dict(zip(case.data.feature_names, case.data.X.T, strict=True)))
    results = []
    for prior in (None, case.prior):
        began = time.perf_counter()
        model = IMAPCE(random_state=seed)
        view = model.fit_transform(table, prior=prior)
        seconds = time.perf_counter() - began
        results.append((model, view, _scored(case, view, seconds)))
    (_, plain_view, plain_scores), (model, view, scores) = results
    comparison = plot_comparison(
        [("nothing known", plain_view), (f"{case.known_words} known", view)],
        color=case.hidden,
        color_name=case.hidden_name,
        marker=case.known_groups,
        marker_name=None if case.known_groups is None else "batch",
        known=case.known_rows,
    )
    figures = {
        "comparison": (f"The same rows, without and with what is known ({case.known_words}).", comparison),
        "loadings": (
            "Which columns make the view on the right: long arrows pull points their way.",
            plot_loadings(model, embedding=view),
        ),
        "path": (f"Why the view on the right. {path_caption(model)}", plot_path(model, table)),
    }
    return Outcome(case, plain_scores, scores, figures)


def score_table(outcomes: list[Outcome]) -> Table:
    """The scores of all views for a terminal, two lines per case."""
    table = Table(box=None, pad_edge=False, caption_justify="left")
    for heading in HEADER:
        table.add_column(heading, justify="left" if heading in HEADER[:2] else "right")
    for outcome in outcomes:
        for row in _score_rows(outcome):
            table.add_row(*row)
        table.add_section()
    table.caption = "A score in brackets is the ceiling (mixing) or chance (read back)."
    return table


def facts(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """The scores of all views as plain values, two per case."""
    return [
        {"data": outcome.case.file_name, "known": known, **asdict(scores)}
        for outcome in outcomes
        for known, scores in ((None, outcome.without), (outcome.case.known_words, outcome.informed))
    ]


def _batches(data: datasets.Dataset, file_name: str, title: str) -> Case:
    names = np.array(["A", "B", "C"])
    story = (
        f"{len(data.X):,} rows of ten columns. The first four columns tell two batches apart, loudly. Columns five "
        "and six tell three cell types apart, quietly. The last four are noise. The batches are old news; the cell "
        "types are what one would like to see.\n\n"
        "Left: the view that knows nothing spends an axis on the batches. Right: the view was told that the first four "
        "columns are known, so what they explain is taken from the rows before it looks. Colours are the cell types "
        "and shapes the batches: where it works, "
        "colours lie apart on the right and both shapes lie on top of each other."
    )
    return Case(
        file_name=file_name,
        title=title,
        story=story,
        known_words="columns 0-3",
        data=data,
        prior=Attributes(list(range(KNOWN_COLUMNS))),
        hidden=names[data.labels["celltype"]],
        hidden_name="cell type",
        known_groups=data.labels["batch"] + 1,
    )


def _scored(case: Case, view: NDArray[np.float64], seconds: float) -> Scores:
    if case.known_groups is not None:
        read_back = residual_predictability(view, case.known_groups)
        return Scores(
            seconds=seconds,
            structure=residual_predictability(view, case.hidden)["knn"],
            mixing=normalized_laplacian_score(view, case.known_groups),
            read_back=read_back["score"],
            chance=read_back["chance"],
        )
    open_rows = slice(None) if case.known_rows is None else ~case.known_rows
    rest, classes = view[open_rows], case.hidden[open_rows]
    clusters = KMeans(len(np.unique(classes)), n_init=10, random_state=0).fit_predict(rest)
    return Scores(
        seconds=seconds,
        structure=residual_predictability(rest, classes)["knn"],
        agreement=normalized_mutual_information(classes, clusters),
    )


def _score_rows(outcome: Outcome) -> list[list[str]]:
    case = outcome.case
    rows = []
    for known, scores in (("nothing", outcome.without), (case.known_words, outcome.informed)):
        mixing, read_back = NOT_ASKED, NOT_ASKED
        if scores.mixing is not None and case.known_groups is not None:
            mixing = f"{scores.mixing:.3f} ({nls_ceiling(case.known_groups):.3f})"
            read_back = f"{scores.read_back:.3f} ({scores.chance:.3f})"
        agreement = NOT_ASKED if scores.agreement is None else f"{scores.agreement:.3f}"
        name = case.file_name
        rows.append([name, known, mixing, read_back, f"{scores.structure:.3f}", agreement, f"{scores.seconds:.2f}"])
    return rows


def _write(outcomes: list[Outcome], folder: Path, seconds: float) -> list[Path]:
    """Write every figure and then the report, whose path comes last."""
    written = []
    sections = []
    for outcome in outcomes:
        for kind, (_, figure) in outcome.figures.items():
            written.append(save_figure(figure, folder / f"{outcome.case.file_name}-{kind}.png"))
        rows = _score_rows(outcome)
        # The page is about one case at a time, so scores that do not apply to it are left out.
        shown = [place for place in range(1, len(HEADER)) if any(row[place] != NOT_ASKED for row in rows)]
        table = ([HEADER[place] for place in shown], [[row[place] for place in shown] for row in rows])
        sections.append(Section(outcome.case.title, outcome.case.story, list(outcome.figures.values()), table=table))
    sections.append(Section("How to read the scores", READING_THE_SCORES))
    summary = (
        "Each picture below is a shadow of a table with many columns: every point is a row. A usual shadow shows "
        "what is loudest, which is often what you know already. imapce takes what you know and looks for the shadow "
        f"that shows what else is there. The views and scores of this page took {seconds:.0f} seconds."
    )
    written.append(
        write_report(folder / "report.html", title="See what else is there", sections=sections, summary=summary)
    )
    return written
