"""Options and manners that commands share: what a prior is called, how errors and warnings are told."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, ParamSpec, TypeVar

import typer

from imapce.errors import ImapceError

P = ParamSpec("P")
R = TypeVar("R")

USER_ERROR = 2
INTERRUPTED = 130


class Missing(StrEnum):
    """What to do with missing values."""

    error = "error"
    mean = "mean"


class Outliers(StrEnum):
    """What to do with gross outliers."""

    auto = "auto"
    keep = "keep"
    trim = "trim"


Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Table to write: .parquet, .csv, .tsv, .arrow, or .npy (the axes alone).",
    ),
]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Scatter plot to write: .png, .pdf or .svg.")]
Report = Annotated[str | None, typer.Option("--report", metavar="FILE", help="HTML page to write.")]
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Rows: .csv, .tsv, .parquet, .arrow, .feather, .npy or .npz.")
]
KnownColumns = Annotated[
    str | None,
    typer.Option("--attributes", metavar="A,B", help="Columns that are known (positions from 0 for .npy and .npz)."),
]
ErasedColumns = Annotated[
    str | None,
    typer.Option(
        "--erase",
        metavar="A,B",
        help="Columns that are known and of which nothing linear may be left in the view, whatever --alpha.",
    ),
]
Background = Annotated[
    str | None, typer.Option("--background", metavar="FILE", help="Rows that are known, with the columns of DATA.")
]
KnownRows = Annotated[
    list[str] | None,
    typer.Option(
        "--known", metavar="COLUMN=VALUE", help="Rows of DATA that are known; repeatable. COLUMN is no feature."
    ),
]
Components = Annotated[int, typer.Option("--components", min=2, max=3, help="Axes of the view.")]
AlphaOrRule = Annotated[
    str,
    typer.Option(
        "--alpha",
        metavar="auto|ratio|NUMBER",
        help="Weight of what is known; 0 ignores it, 1 is the paper's. ratio: the least at which no view keeps more of "
        "DATA than of the known.",
    ),
]
Mu = Annotated[str, typer.Option("--mu", metavar="auto|paper|NUMBER", help="Weight of pulling clusters apart.")]
CenterOnly = Annotated[bool, typer.Option("--center-only", help="Keep the columns' own scales.")]
Starts = Annotated[int, typer.Option("--starts", help="Starting points of the search.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random.")]
LabelColumn = Annotated[
    str | None, typer.Option("--labels", metavar="COLUMN", help="Column that colours the pictures. It is no feature.")
]
Drop = Annotated[str | None, typer.Option("--drop", metavar="A,B", help="Columns to leave out.")]
OutlyingRows = Annotated[
    Outliers,
    typer.Option("--outliers", help="Use gross outliers, or set them aside; auto does where alpha or mu is automatic."),
]
MissingValues = Annotated[Missing, typer.Option("--missing", help="Refuse missing values, or fill them with means.")]


def in_one_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """Tell the errors meant for users as one line on stderr, and end on Ctrl-C as shells expect."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except ImapceError as problem:
            typer.echo(f"imapce: {' '.join(str(problem).split())}", err=True)
            raise typer.Exit(USER_ERROR) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None

    return told


def number_or_rule(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print what the library warns of as lines like those of errors, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        typer.echo(f"imapce: warning: {' '.join(str(warning.message).split())}", err=True)
