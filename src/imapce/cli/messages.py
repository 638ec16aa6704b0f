"""How a command speaks on stderr: errors, warnings and notes in one line each, in its own words.

@in_one_sentence
def embed(...): ...      # an ImapceError becomes "imapce: <sentence>" and status 2

with warnings_in_one_line():
    model.fit(X)         # a warning becomes "imapce: warning: <sentence>"

note("rows.csv was read with semicolons between values")

with named("--plot"):
    save_figure(...)     # "path must lie in ..." becomes "--plot must lie in ..."

With --quiet or --json notes and warnings are not printed; --json has them in its object.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import typer

from imapce.common.whole_files import OF_WRITING
from imapce.errors import Argument, FileName, ImapceError, Reference, Sentence

P = ParamSpec("P")
R = TypeVar("R")

USER_ERROR = 2
INTERRUPTED = 130
STOPPED = "stopped; no file is left half written."

# What the arguments of the library are called here.
OPTIONS = {
    "X": "DATA",
    "Attributes(columns)": "--known",
    "Attributes(columns, erase=True)": "--erase",
    "Labels(y)": "--known",
    "Labels(y, erase=True)": "--erase",
    "Samples(background)": "--background",
    "Subset(rows)": "--known-rows",
    "alpha": "--alpha",
    "clusterer": "--clusterer",
    "decimal": "--decimal",
    "encoding": "--encoding",
    "granularity": "--granularity",
    "header": "--header",
    "max_clusters": "--max-clusters",
    "methods": "--methods",
    "min_cluster_size": "--min-cluster-size",
    "missing": "--missing",
    "mu": "--mu",
    "n_clusters": "--clusters",
    "n_components": "--components",
    "n_starts": "--starts",
    "sep": "--sep",
    "sheet": "--sheet",
    "significance": "--significance",
    "transform": "--log or --rank",
    "unknown": "--unknown",
}
# The phrases of the library that are said otherwise here, by their keys; most are ways out.
PHRASES = {
    "another encoding": "name its encoding with --encoding",
    "another separator": ", and --sep names another separator",
    "anyway": "--anyway",
    "carried": "left out of the features and carried to the output",
    "changed session": "go on from there with --resume, or choose another name",
    "drop column": " (leave it out with --drop)",
    "drop or clip": "drop those rows, clip the values or leave the columns out with --drop",
    "drop or fill": "drop those rows, leave out the columns with --drop, or fill them with --missing mean",
    "extra columns": ", or leave it out of DATA with --drop",
    "held session": "end that process or choose another name",
    "learned columns": "the columns of DATA",
    "keep columns": "--columns keeps what can be kept",
    "keep dates": "--dates as-numbers the dates",
    "leave out": "leave the option out",
    "leave out or": "leave the option out or ",
    "name a sheet": "--sheet names another",
    "no feature": "add one, or name the right separator with --sep",
    "no label": "Leave it empty",
    "number of a date": "take it with --dates as-numbers",
    "or drop column": ", or leave it out with --drop",
    "or None": "",
    "overrule reading": "--sep, --decimal, --encoding and --header overrule it",
    "replace sentinel": "leave these cells empty",
    "resume": "add --resume to go on",
    "take the split": ": --anyway takes it",
    "log scale": "--log skewed",
    "drop repeats": "--drop",
    "add known": "to --known?",
}
# The same for a command that takes the columns and the filling of a model, and has no options for them.
OPTIONS_WITH_MODEL = {**OPTIONS, "labels": "the known labels of DATA"}
PHRASES_WITH_MODEL = {
    **PHRASES,
    "drop column": "",
    "drop or clip": "drop those rows or clip the values",
    "drop or fill": "drop those rows or fill them, or use a model made with `imapce embed --missing mean`",
    "extra columns": "",
    "or drop column": "",
    "unknown category": "drop those rows, use --unknown ignore or learn again",
}


def in_own_words(sentence: str) -> str:
    """A sentence of the library as the command line says it.

    >>> in_own_words(Sentence("fill them with ", Argument("missing", "mean"), "."))
    'fill them with --missing mean.'
    """
    has_model = voice().has_model
    options, phrases = (OPTIONS_WITH_MODEL, PHRASES_WITH_MODEL) if has_model else (OPTIONS, PHRASES)

    def words_of(part: Reference) -> str:
        if isinstance(part, FileName):
            return str(part)
        if isinstance(part, Argument):
            option = options.get(part.name)
            return str(part) if option is None else option if part.value is None else f"{option} {part.value}"
        return phrases.get(part.key, part.words)

    return sentence.rendered(words_of) if isinstance(sentence, Sentence) else sentence


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
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        silent = bool(kwargs.get("quiet") or kwargs.get("as_json"))
        before = _voice.set(Voice(silent=silent, has_model="model" in kwargs))
        try:
            result = command(*args, **kwargs)
            # Here and not at the end of Python, where a full disk could only be told as a traceback.
            sys.stdout.flush()
            return result
        except ImapceError as problem:
            typer.echo(f"imapce: {' '.join(in_own_words(problem.sentence).split())}", err=True)
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

    return run


def _close_stdout() -> None:
    """Python flushes what is left at its end, and would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def named(option: str) -> Iterator[None]:
    """What the library says of its argument `path`, said of the option or argument that a user gave."""
    try:
        yield
    except ImapceError as problem:
        if problem.argument == "path":
            problem.argument = option
        raise


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print what the library warns of as lines like those of errors, without the place in the code.

    What other libraries say to those who write code, not to those who run it, is no line of a command.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for of_code in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", of_code)
        yield
    for warning in caught:
        words = warning.message if isinstance(warning.message, str) else warning.message.args[0]
        sentence = " ".join(in_own_words(words if isinstance(words, str) else str(words)).split())
        voice().warnings.append(sentence)
        if not voice().silent:
            typer.echo(f"imapce: warning: {sentence}", err=True)
