"""The methods of a comparison: how each is made, which knowledge it can use, how many rows it can bear.

>>> METHODS["CTSNE"].title, sorted(METHODS["CTSNE"].uses)
('ct-SNE', ['attributes', 'labels', 'subset'])
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.priors.kinds import KINDS, Prior

EVERY_KIND = frozenset(KINDS)
OF_ROWS = frozenset(("attributes", "labels", "subset"))
OF_COLUMNS_AND_ROWS = frozenset(("attributes", "subset"))
NO_KIND: frozenset[str] = frozenset()

# The maps by neighbours (n log n) bear more rows than those with all n × n pairs in every step.
MANY_ROWS = 10_000
FEW_ROWS = 3_000


# What a fast method and the scores of any take, on any number of rows: near enough to tell when the work will be done.
SECONDS_OF_A_FAST_METHOD, SECONDS_OF_SCORES = 1.0, 2.0


@dataclass(frozen=True)
class Cost:
    """What a slow method was measured to take: `seconds` on so many `rows`, and the power of the rows they grow with.

    >>> Cost(60.0, rows=10_000, growth=1.5).on(2_500)
    7.5
    """

    seconds: float
    _: KW_ONLY
    rows: int
    growth: float

    def on(self, n_rows: int) -> float:
        """The seconds that so many rows would take."""
        return self.seconds * (n_rows / self.rows) ** self.growth


@dataclass(frozen=True)
class Method:
    """One method: `make(random_state=..., standardize=..., missing=..., **parameters)` gives its estimator.

    `uses` are the kinds of knowledge it can be given, none for a method that ignores all of it. A method that goes
    `by_labels` is given the classes of the rows where these are known. Above `max_rows` rows it gets a sample. A
    method without a `cost` is fast.

    >>> from imapce import Samples
    >>> from imapce.baselines import PCA
    >>> mine = Method("Mine", lambda **parameters: PCA(n_components=1, **parameters), uses=OF_ROWS)
    >>> mine.left_out([Samples([[0.0, 1.0]])])
    'It can be told of known columns, known labels and known rows, not of a background table.'
    """

    title: str
    make: Callable[..., Any]
    _: KW_ONLY
    uses: frozenset[str] = NO_KIND
    by_labels: bool = False
    max_rows: int | None = None
    extra: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost | None = None

    def rows_of(self, n_rows: int, max_rows: int | None = None) -> int:
        """How many of the rows it gets: all, or a sample where it is slow; `max_rows` overrules the size of that."""
        most = max_rows if max_rows is not None and self.max_rows is not None else self.max_rows
        return n_rows if most is None else min(n_rows, most)

    def seconds(self, n_rows: int, max_rows: int | None = None) -> float:
        """About how long it takes, with its scores."""
        measured = 0.0 if self.cost is None else self.cost.on(self.rows_of(n_rows, max_rows))
        return SECONDS_OF_A_FAST_METHOD + measured + SECONDS_OF_SCORES

    def left_out(self, priors: list[Prior]) -> str | None:
        """Why these priors cannot be given to the method, in one sentence; None where they can."""
        foreign = {prior.kind for prior in priors} - self.uses
        if self.uses and foreign:
            *kinds, last = (kind.described for name, kind in KINDS.items() if name in self.uses)
            refused = " and ".join(kind.described for name, kind in KINDS.items() if name in foreign)
            return f"It can be told of {', '.join(kinds)} and {last}, not of {refused}."
        return None


def _lazily(module: str, name: str) -> Callable[..., Any]:
    """A maker that imports its class when called: most comparisons need a few methods, and some import slowly."""

    def make(**parameters: Any) -> Any:
        return getattr(importlib.import_module(module), name)(**parameters)

    return make


def _baseline(name: str, title: str, **facts: Any) -> tuple[str, Method]:
    return name, Method(title, _lazily("imapce.baselines", name), **facts)


def _of_labels(name: str, title: str, **facts: Any) -> tuple[str, Method]:
    return _baseline(name, title, uses=OF_ROWS, by_labels=True, extra="baselines", **facts)


# Costs in seconds of one core, measured on the Adult table (32,561 rows, 108 columns of features); those of UMAP are
# mostly what Numba takes to compile it.
# IMAPCE first, then from the nearest relatives, linear views with knowledge, to maps that are told nothing.
METHODS: dict[str, Method] = dict(
    [
        ("IMAPCE", Method("IMAPCE", _lazily("imapce.estimators.imapce", "IMAPCE"), uses=EVERY_KIND)),
        _baseline("PCA", "PCA"),
        _baseline("CPCA", "cPCA", uses=EVERY_KIND),
        _baseline("GCPCA", "gcPCA", uses=EVERY_KIND),
        _baseline("LEACE", "LEACE", uses=OF_ROWS, by_labels=True),
        _baseline(
            *("KurtosisPursuit", "kurtosis pursuit"),
            uses=OF_COLUMNS_AND_ROWS,
            cost=Cost(30, rows=10_000, growth=0.3),
        ),
        _baseline("SIDE", "SIDE", uses=OF_ROWS, by_labels=True),
        _baseline(*("TSNE", "t-SNE"), max_rows=MANY_ROWS, extra="baselines", cost=Cost(62, rows=10_000, growth=1.45)),
        _baseline(*("UMAP", "UMAP"), max_rows=MANY_ROWS, extra="umap-learn", cost=Cost(50, rows=10_000, growth=0.2)),
        _of_labels("CTSNE", "ct-SNE", max_rows=MANY_ROWS, cost=Cost(45, rows=10_000, growth=1.5)),
        _of_labels("RevisedCTSNE", "revised ct-SNE", max_rows=MANY_ROWS, cost=Cost(35, rows=10_000, growth=1.55)),
        _of_labels("FairNeRV", "Fair-NeRV", max_rows=FEW_ROWS, cost=Cost(21, rows=3_000, growth=2.0)),
        _of_labels("FairTNeRV", "Fair-t-NeRV", max_rows=FEW_ROWS, cost=Cost(13, rows=3_000, growth=2.0)),
    ]
)


def chosen_methods(methods: str | Iterable[str | Method] = "fast") -> list[Method]:
    """Methods by name, in the order given, each once; "fast" are those that take seconds on any table, "all" is all.

    Case and hyphens in a name do not matter.

    >>> [method.title for method in chosen_methods("imapce,ct-sne")]
    ['IMAPCE', 'ct-SNE']
    """
    if isinstance(methods, str):
        methods = [name.strip() for name in methods.split(",") if name.strip()]
    spelled = {plain_name(spelling): method for name, method in METHODS.items() for spelling in (name, method.title)}
    chosen: list[Method] = []
    for wanted in methods:
        if isinstance(wanted, str) and wanted.lower() in ("fast", "all"):
            found = [method for method in METHODS.values() if method.cost is None or wanted.lower() == "all"]
        elif isinstance(wanted, Method):
            found = [wanted]
        elif not isinstance(wanted, str):
            raise InvalidTypeError("methods", f"must be names or Method objects, got {wanted!r}: write 'IMAPCE,CTSNE'.")
        elif plain_name(wanted) in spelled:
            found = [spelled[plain_name(wanted)]]
        else:
            raise InvalidValueError(
                "methods",
                f"must be 'fast', 'all' or names of methods, got {wanted!r}: the methods are {', '.join(METHODS)}.",
            )
        chosen += [method for method in found if method not in chosen]
    if not chosen:
        raise InvalidValueError(
            "methods", "must name at least one method, got none: leave it out to take the fast ones."
        )
    return chosen


def plain_name(name: str) -> str:
    """A name without what spellings of it differ in.

    >>> plain_name("Fair-t-NeRV")
    'fairtnerv'
    """
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
