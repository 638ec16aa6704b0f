"""How a command speaks when something is wrong: one line on stderr, and the exit status that shells expect.

@in_one_sentence
def embed(...): ...      # an ImapceError becomes "imapce: <sentence>" and status 2

with warnings_in_one_line():
    model.fit(X)         # a warning becomes "imapce: warning: <sentence>"

note("rows.csv was read with semicolons between values")

with named("--plot"):
    save_figure(...)     # "path must lie in ..." becomes "--plot must lie in ..."

With --quiet or --json notes and warnings are not printed; --json has them in its object.

What the library advises is told in the words of the command line: `--missing mean` for `missing="mean"`.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import typer

from imapce.common.whole_files import OF_WRITING
from imapce.errors import ImapceError, InvalidValueError

P = ParamSpec("P")
R = TypeVar("R")

USER_ERROR = 2
INTERRUPTED = 130
STOPPED = "stopped; no file is left half written."

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
    (r'\bmethods="all"', "--methods all"),
    (r"^methods must", "--methods must"),
    (
        r"go on from there with load\(path, X\), or keep this state with save\(path\) under another name",
        "go on from there with --resume, or choose another name",
    ),
    (r", choose another file, or only read it with autosave=False", " or choose another name"),
    (r"; go on with it by Exploration.load\(path, X\), or choose", "; add --resume to go on, or choose"),
    (r"; pass another encoding", "; name its encoding with --encoding"),
    (r"^n_starts must", "--starts must"),
    (r"^granularity (must|is for)", r"--granularity \1"),
    (r"^n_clusters must be None or a", "--clusters must be a"),
    (r"^n_clusters (must|is for)", r"--clusters \1"),
    (r"\bmin_cluster_size=(\d+)", r"--min-cluster-size \1"),
    (r"\blower min_cluster_size\b", "lower --min-cluster-size"),
    (r'\brun\(structure="ignore"\)', "--anyway"),
    (r'use clusterer="joint"', "use --clusterer joint"),
    (r"\bSamples\(background\)", "--background"),
    (r"; pass prior=None", "; leave the option out"),
    (r"\bLabels\(y(, erase=True)?\)", "--known-label"),
    (r"^labels must be", "the known labels of DATA must be"),
    (r"Pass None for rows whose class is new", "Leave it empty for rows whose class is new"),
    (r"\bAttributes\(columns\)", "--attributes"),
    (r"^X (must|cannot|has)\b", r"DATA \1"),
    (r"goes in double quotes\)", "goes in double quotes, and --sep names another separator)"),
)


# The same for a command that takes the columns and the filling of a model, and has no options for them.
WORDS_OF_A_MODEL = (
    (
        r"drop those rows, leave out the columns with --drop, or fill them with --missing mean",
        "drop those rows or fill them, or use a model made with `imapce embed --missing mean`",
    ),
    (r", clip the values or leave the columns out with --drop", " or clip the values"),
    (r" or leave the columns out with --drop", ""),
    (r", or leave it out( of DATA)? with --drop", ""),
    (r" \(leave it out with --drop\)", ""),
)


def in_own_words(sentence: str) -> str:
    """A sentence of the library as the command line would say it, in one line.

    >>> in_own_words('X must not hold missing values: fill them with missing="mean".')
    'DATA must not hold missing values: fill them with --missing mean.'
    """
    told = " ".join(sentence.split())
    for pattern, own in (*OWN_WORDS, *(WORDS_OF_A_MODEL if voice().has_model else ())):
        told = re.sub(pattern, own, told)
    return told


@dataclass
class Voice:
    """What one run of a command had to say beside its result, and whether it says so aloud."""

    silent: bool = False
    has_model: bool = False
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


_voice: ContextVar[Voice] = ContextVar("voice")


def voice() -> Voice:
    """The voice of the command that runs."""
    try:
        return _voice.get()
    except LookupError:
        return Voice()


def note(sentence: str) -> None:
    """Tell what a user should know and need not change, in one line on stderr."""
    voice().notes.append(sentence)
    if not voice().silent:
        typer.echo(f"imapce: note: {sentence}", err=True)


def in_one_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """Tell the errors meant for users as one line on stderr, and end on Ctrl-C as shells expect."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        silent = bool(kwargs.get("quiet") or kwargs.get("as_json"))
        before = _voice.set(Voice(silent=silent, has_model="model" in kwargs))
        try:
            result = command(*args, **kwargs)
            # Here and not at the end of Python, where a full disk could only be told as a traceback.
            sys.stdout.flush()
            return result
        except ImapceError as problem:
            typer.echo(f"imapce: {in_own_words(str(problem))}", err=True)
            raise typer.Exit(USER_ERROR) from None
        except KeyboardInterrupt as stop:
            typer.echo(f"imapce: {str(stop) or STOPPED}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read the output has read enough.
            _close_stdout()
            raise typer.Exit from None
        except OSError as problem:
            # What is written to files has its own sentence, so this is standard output.
            if problem.errno not in OF_WRITING:
                raise
            _close_stdout()
            typer.echo(f"imapce: standard output cannot be written ({problem.strerror}): send it elsewhere.", err=True)
            raise typer.Exit(USER_ERROR) from None
        finally:
            _voice.reset(before)

    return told


def _close_stdout() -> None:
    """Python flushes what is left at its end, and would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def named(option: str) -> Iterator[None]:
    """What the library says of its argument `path`, said of the option or argument that a user gave."""
    try:
        yield
    except ImapceError as problem:
        words = str(problem)
        if not words.startswith("path "):
            raise
        raise InvalidValueError(option + words.removeprefix("path")) from problem


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print what the library warns of as lines like those of errors, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        sentence = in_own_words(str(warning.message))
        voice().warnings.append(sentence)
        if not voice().silent:
            typer.echo(f"imapce: warning: {sentence}", err=True)
