"""How a command speaks when something is wrong: one line on stderr, and the exit status that shells expect.

@in_one_sentence
def embed(...): ...      # an ImapceError becomes "imapce: <sentence>" and status 2

with warnings_in_one_line():
    model.fit(X)         # a warning becomes "imapce: warning: <sentence>"

note("rows.csv was read with semicolons between values")

What the library advises is told in the words of the command line: `--missing mean` for `missing="mean"`.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import typer

from imapce.errors import ImapceError

P = ParamSpec("P")
R = TypeVar("R")

USER_ERROR = 2
INTERRUPTED = 130

# What the library says, and how the same is said here; in this order, since one may hold another.
OWN_WORDS = (
    (r' and drop the rest, or pass extra="ignore" for extra columns', ", or leave it out of DATA with --drop"),
    (r"the columns that the encoding was learned from", "the columns of DATA"),
    (r" \(sparse matrices excepted\)", ""),
    (r"drop those rows or columns, or fill", "drop those rows, leave out the columns with --drop, or fill"),
    (r"\(drop it, or make it categorical\)", "(leave it out with --drop)"),
    (r"\(drop it\)", "(leave it out with --drop)"),
    (r"\(make them text\)", "(leave it out with --drop)"),
    (r"take a number out of it, for example the year or the seconds since a start", "take it with --dates as-numbers"),
    (r", or drop it\)", ", or leave it out with --drop)"),
    (r"^(X .*)drop those rows or learn again", r"\1drop those rows, use --unknown ignore or learn again"),
    (r"drop those rows or clip the values", "drop those rows, clip the values or leave the columns out with --drop"),
    (r"replace these values\.", "replace these values or leave the columns out with --drop."),
    (r'\b(missing|unknown|sep|decimal|encoding)="(\w+)"', r"--\1 \2"),
    (r"^(alpha|mu|sep|decimal|encoding) (must|is for)", r"--\1 \2"),
    (r"^header is for", "--header is for"),
    (r"; pass another encoding", "; name its encoding with --encoding"),
    (r"^n_starts must", "--starts must"),
    (r"\bSamples\(background\)", "--background"),
    (r"; pass prior=None", "; leave the option out"),
    (r"\bLabels\(y(, erase=True)?\)", "--known-label"),
    (r"\bAttributes\(columns\)", "--attributes"),
    (r"^X (must|cannot|has)\b", r"DATA \1"),
    (r"goes in double quotes\)", "goes in double quotes, and --sep names another separator)"),
)


def in_own_words(sentence: str) -> str:
    """A sentence of the library as the command line would say it, in one line.

    >>> in_own_words('X must not hold missing values: fill them with missing="mean".')
    'DATA must not hold missing values: fill them with --missing mean.'
    """
    told = " ".join(sentence.split())
    for pattern, own in OWN_WORDS:
        told = re.sub(pattern, own, told)
    return told


def note(sentence: str) -> None:
    """Tell what a user should know and need not change, in one line on stderr."""
    typer.echo(f"imapce: note: {sentence}", err=True)


def in_one_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """Tell the errors meant for users as one line on stderr, and end on Ctrl-C as shells expect."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except ImapceError as problem:
            typer.echo(f"imapce: {in_own_words(str(problem))}", err=True)
            raise typer.Exit(USER_ERROR) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None

    return told


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print what the library warns of as lines like those of errors, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        typer.echo(f"imapce: warning: {in_own_words(str(warning.message))}", err=True)
