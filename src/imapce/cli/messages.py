"""How a command speaks when something is wrong: one line on stderr, and the exit status that shells expect.

@in_one_sentence
def embed(...): ...      # an ImapceError becomes "imapce: <sentence>" and status 2

with warnings_in_one_line():
    model.fit(X)         # a warning becomes "imapce: warning: <sentence>"
"""

from __future__ import annotations

import functools
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


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print what the library warns of as lines like those of errors, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        typer.echo(f"imapce: warning: {' '.join(str(warning.message).split())}", err=True)
