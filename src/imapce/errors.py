"""What imapce raises: one sentence made of the argument, the rule, the value got and the way out, kept as data.

Python, the command line and the page call the same argument by different names (`missing="mean"`, `--missing mean`) and
know different ways out. A `Sentence` therefore keeps its parts: read as a text it is the sentence for Python, and
another surface renders those parts that it calls otherwise.

>>> note = Sentence("fill them with ", Argument("missing", "mean"), ".")
>>> print(note)
fill them with missing="mean".
>>> note.rendered(lambda part: f"--{part.name} {part.value}")
'fill them with --missing mean.'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Argument:
    """An argument by its Python name, alone or set to a value.

    >>> print(Argument("X"), Argument("missing", "mean"), Argument("min_cluster_size", 5))
    X missing="mean" min_cluster_size=5
    """

    name: str
    value: str | int | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f'{self.name}="{self.value}"' if isinstance(self.value, str) else f"{self.name}={self.value}"


@dataclass(frozen=True)
class Phrase:
    """Words of Python, mostly a way out, for which another surface has its own under the same key.

    >>> print(Phrase("known nothing", "pass prior=None"))
    pass prior=None
    """

    key: str
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class FileName:
    """A file by the path that was given; a surface whose users never saw that path tells the last part of it.

    >>> print(FileName("folder/rows.csv"))
    'folder/rows.csv'
    """

    path: str

    def __str__(self) -> str:
        return repr(self.path)

    @property
    def last(self) -> str:
        return repr(Path(self.path).name)


Reference = Argument | Phrase | FileName
Words = str | Reference


class Sentence(str):
    """Words for Python that keep the parts which other surfaces say in their own way; everywhere else just a text.

    An f-string or `join` makes a plain text of it; put together with `Sentence(...)` the parts are kept.

    >>> Sentence("use ", Argument("unknown", "ignore")) + "."
    'use unknown="ignore".'
    """

    parts: tuple[Words, ...]

    def __new__(cls, *parts: Words) -> Self:
        whole = super().__new__(cls, "".join(map(str, parts)))
        whole.parts = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Sentence) else [part]))
        return whole

    @classmethod
    def joined(cls, between: str, sentences: Iterable[Words]) -> Self:
        """The sentences one after the other, with `between` between them."""
        parts = [part for sentence in sentences for part in (between, sentence)]
        return cls(*parts[1:])

    def has_phrase(self, key: str) -> bool:
        """Whether one of its parts is the phrase with this key: what a sentence is about, whatever its words.

        >>> Sentence("or ", Phrase("log scale", 'transform="log"')).has_phrase("log scale")
        True
        """
        return any(isinstance(part, Phrase) and part.key == key for part in self.parts)

    def rendered(self, words_of: Callable[[Reference], str]) -> str:
        """The sentence as a surface says it, which gives its words of every reference."""
        return "".join(part if isinstance(part, str) else words_of(part) for part in self.parts)


class ImapceError(Exception):
    """Every error raised on purpose by imapce; each subclass is also a built-in error, so handlers keep working.

    Made of the `argument` it is about, the `rule`, in words what was `got` and the `way_out`; where only one text is
    given, that is the whole sentence.

    >>> from imapce.datasets import make_synthetic
    >>> try:
    ...     make_synthetic(2)
    ... except ImapceError as problem:
    ...     print(isinstance(problem, ValueError), problem)
    True n_samples must be a whole number of at least 6 (there are six combined clusters), got 2: give a larger ...
    >>> problem = ImapceError("alpha", "must be a number", "'b'", way_out="use 1")
    >>> print(problem)
    alpha must be a number, got 'b': use 1.
    >>> problem.argument, problem.got, problem.way_out
    ('alpha', "'b'", 'use 1')
    """

    def __init__(
        self, argument: str, rule: Words | None = None, got: Words | None = None, *, way_out: Words | None = None
    ) -> None:
        self.argument: str | None = None if rule is None else argument
        self.rule: Words = argument if rule is None else rule
        self.got = got
        self.way_out = way_out
        super().__init__(self.sentence)

    @property
    def sentence(self) -> Sentence:
        """The parts as one sentence."""
        if self.argument is None:
            return Sentence(self.rule)
        parts: list[Words] = [Argument(self.argument), " ", self.rule]
        if self.got is not None:
            parts += ["; got " if self.way_out is None else ", got ", self.got]
        if self.way_out is not None:
            parts += [": ", self.way_out]
        whole = Sentence(*parts)
        return whole if whole.endswith((".", "?")) else Sentence(whole, ".")

    def __str__(self) -> str:
        return str(self.sentence)

    def rendered(self, words_of: Callable[[Reference], str]) -> str:
        """The sentence as a surface says it."""
        return self.sentence.rendered(words_of)


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


def one_line(error: BaseException, *, path: str = "", most: int = 300) -> Sentence:
    """What another error says, in one line; its type where it says nothing. A `path` in it is told without its folders.

    >>> one_line(ValueError("no\\n  number")), one_line(EOFError())
    ('no number', 'EOFError')
    >>> one_line(OSError("no /tmp/a.csv"), path="/tmp/a.csv")
    'no a.csv'
    """
    if error.args and isinstance(error.args[0], Sentence):
        return error.args[0]
    words = " ".join(str(error).split())
    return Sentence((words.replace(path, Path(path).name) if path else words)[:most] or type(error).__name__)


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
