"""What imapce raises: one clear sentence that names the argument, the rule, the value got and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ImapceError(Exception):
    """Every error raised on purpose by imapce; each subclass is also a built-in error, so handlers keep working.

    >>> from imapce.datasets import make_synthetic
    >>> try:
    ...     make_synthetic(2)
    ... except ImapceError as problem:
    ...     print(isinstance(problem, ValueError), problem)
    True n_samples must be a whole number of at least 6 (there are six combined clusters), got 2: give a larger ...
    """


class InvalidValueError(ImapceError, ValueError):
    """An argument has the right type and a value that cannot be used."""


class InvalidTypeError(ImapceError, TypeError):
    """An argument is of a kind that cannot be used."""


class FileFormatError(InvalidValueError):
    """A file is empty, cut short, of another version or not what it says it is."""


class DataNotFoundError(ImapceError, OSError):
    """A data set is neither on disk nor within reach; the sentence says which file to put where."""


class CancelledError(ImapceError, RuntimeError):
    """Work was ended on request, by a `cancel` that returned True; everything is as it was before."""


class MissingExtraError(ImapceError, ImportError):
    """A feature needs a package that is not installed; the sentence gives the pip line."""


@contextmanager
def needs(feature: str, install: str) -> Iterator[None]:
    """Tell a failed import in one sentence: which feature, and what to install.

    >>> with needs("ct-SNE", "imapce[baselines]"):
    ...     import a_library_nobody_has
    Traceback (most recent call last):
    imapce.errors.MissingExtraError: ct-SNE needs a_library_nobody_has, which is not installed; run pip install ...
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f'{feature} needs {error.name or "a library"}, which is not installed; run pip install "{install}".'
        ) from error
