"""The paper's comparison for one's own data: the same rows and the same knowledge to every method, the same scores.

>>> from imapce.datasets import make_synthetic
>>> from imapce import Attributes
>>> data = make_synthetic(300)
>>> comparison = compare(data.X, Attributes([0, 1, 2, 3]), ["cPCA", "PCA"], known_labels=data.labels["batch"])
>>> [one.scores["nls_share"] > 0.9 for one in comparison.results]
[True, False]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from imapce.choice.leakage import PriorLeakage
from imapce.common.arrays import Array, Codes, Mask, require_in_memory
from imapce.common.checks import as_codes, as_labels, as_matrix, is_whole, random_generator
from imapce.common.progress import Progress, watching
from imapce.common.words import axis_names, counted, listing, roughly
from imapce.common.work import Watch
from imapce.comparison.in_words import comparison_as_html, comparison_as_text
from imapce.comparison.methods import METHODS, SECONDS_OF_SCORES, Method, chosen_methods, plain_name
from imapce.comparison.scores import QUANTILE_BINS, SCORES, class_labels, stated, view_scores
from imapce.errors import Argument, ImapceError, InvalidValueError, Sentence
from imapce.metrics.readback import is_measurement
from imapce.priors.base import Prior
from imapce.priors.effect import explained_away
from imapce.priors.kinds import as_list
from imapce.priors.names import named_columns, with_names_read
from imapce.rows.standardized import column_scales
from imapce.tables.encode import is_table, native_table
from imapce.tables.named import NamedMatrix
from imapce.tables.reader import Reader
from imapce.tables.reading import as_read

__all__ = ["METHODS", "Comparison", "Method", "MethodResult", "compare"]


# Measured on one view of 30,000 rows: scores of 10,000 of them differ by at most 0.013 from those of all.
MOST_SCORED_ROWS = 10_000
MOST_COMBINED_CLASSES = 20
KNOWN_CLASSES = "known classes"


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What came of one method: an embedding of `rows` with its seconds and scores, or why it was left out.

    >>> MethodResult(METHODS["CTSNE"], left_out="It can be told of known rows, not of a background.").embedding is None
    True
    """

    method: Method
    embedding: Array | None = None
    rows: Codes | None = None
    _: KW_ONLY
    seconds: float | None = None
    scores: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(SCORES))
    left_out: str | None = None
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows = 0 if self.rows is None else len(self.rows)
        return f"MethodResult({self.method.title}: {self.left_out or counted(rows, 'row')})"

    @property
    def axes(self) -> list[str]:
        """What the axes of the embedding are called."""
        return axis_names(0 if self.embedding is None else self.embedding.shape[1], plain_name(self.method.title))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results in the order of the methods, the rows all are scored on, and how to read the scores.

    `known` holds what the prior says of each row by name, empty where it says nothing of rows.

    >>> Comparison([], np.arange(3), 3, known={}, notes=[]).worked
    []
    """

    results: list[MethodResult]
    scored_rows: Codes
    n_rows: int
    _: KW_ONLY
    known: dict[str, NDArray[Any]]
    notes: list[str]

    def __repr__(self) -> str:
        return comparison_as_text(self)

    def _repr_html_(self) -> str:
        return comparison_as_html(self)

    @property
    def worked(self) -> list[MethodResult]:
        """The methods that gave an embedding."""
        return [result for result in self.results if result.embedding is not None]

    def embedding_of_scored_rows(self, result: MethodResult) -> Array:
        """Where a method puts the rows that all methods are scored on."""
        assert result.embedding is not None
        assert result.rows is not None
        return result.embedding[np.searchsorted(result.rows, self.scored_rows)]

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary per method: its name, rows, seconds and scores, and why it was left out."""
        return [
            {
                "method": result.method.title,
                "rows": None if result.rows is None else len(result.rows),
                "seconds": result.seconds,
                **result.scores,
                "left_out": result.left_out,
            }
            for result in self.results
        ]


def compare(
    X: Any,
    prior: Any = None,
    methods: str | Iterable[str | Method] = "fast",
    *,
    labels: Any = None,
    known_labels: Any = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    standardize: bool = True,
    missing: Literal["error", "mean"] = "error",
    max_rows: int | None = None,
    random_state: Any = 0,
    progress: Progress = None,
) -> Comparison:
    """Embed X with every method, given `prior`, and score all embeddings on the same rows.

    `methods` are "fast", those that take seconds on any table, "all", or names; the notes of the fast ones say how
    long all would take, about.

    A method that cannot use this prior, lacks its library or fails stands in the result with a sentence, and the
    others go on. `labels` is what one hopes to see; `known_labels` the classes the prior stands for, one per row, where
    its columns do not say them: methods that need classes get them and the prior is scored by them. Slow methods get
    the same random sample of rows (10,000, Fair-NeRV 3,000, or `max_rows`), and all are scored on the rows that every
    one of them placed. `parameters` go to the methods by title, such as {"IMAPCE": {"mu": 10}}; `progress` is called
    with words and the share that is done, and may raise to cancel; True shows a bar.

    >>> from imapce import Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> [one.method.title for one in compare(X, Attributes([0]), "PCA,LEACE").worked]
    ['PCA', 'LEACE']
    """
    chosen, priors = chosen_methods(methods), as_list(with_names_read(prior, X))
    if max_rows is not None and (not is_whole(max_rows) or max_rows < 2):
        raise InvalidValueError(f"max_rows must be a whole number of at least 2, got {max_rows!r}: 10,000 is usual.")
    generator = random_generator(random_state)
    seed = int(random_state) if is_whole(random_state) else int(generator.randint(2**31 - 1))
    table = ComparedTable(X, missing=missing, standardize=standardize, named=named_columns(priors))
    for one in priors:
        one.require_same_index(X)
    priors = [one.resolve(table.n_rows) for one in priors]
    known = _known_of_rows(table, priors)
    if known_labels is not None:
        known = {KNOWN_CLASSES: as_labels("known_labels", known_labels, table.n_rows)}
    told = None if known_labels is None else as_codes("known_labels", known[KNOWN_CLASSES], table.n_rows)
    if labels is not None:
        labels = np.asarray(labels)
        class_labels(labels, table.n_rows)
    order = generator.permutation(table.n_rows)

    with watching(progress, of="of the comparison") as watch:
        results: list[MethodResult] = []
        work = _Work(chosen, table.n_rows, max_rows, watch)
        for method in chosen:
            work.tell(method, "fitting")
            limit = method.rows_of(table.n_rows, max_rows)
            rows = np.arange(table.n_rows) if limit >= table.n_rows else np.sort(order[:limit])
            settings = {"standardize": standardize, "missing": missing, "random_state": seed}
            settings |= {**method.parameters, **(parameters or {}).get(method.title, {})}
            results.append(_fitted(method, table, rows, priors, told, settings))
        fewest = min([MOST_SCORED_ROWS, *(len(one.rows) for one in results if one.rows is not None)])
        scored = np.arange(table.n_rows) if fewest >= table.n_rows else np.sort(order[:fewest])
        unexplored = _unexplored(priors, table.n_rows)
        comparison = Comparison(
            results,
            scored,
            table.n_rows,
            known=known,
            notes=notes_on(table, priors, known, known_labels, labels, unexplored, scored),
        )
        if isinstance(methods, str) and methods.strip().lower() == "fast":
            comparison.notes.extend(note_on_slow(priors, table.n_rows, max_rows))
        features = table.scaled(scored)
        for place, result in enumerate(results):
            if result.embedding is None:
                continue
            work.tell(result.method, "scoring")
            score = partial(
                view_scores,
                comparison.embedding_of_scored_rows(result),
                features,
                known={name: column[scored] for name, column in known.items()},
                labels=None if labels is None else labels[scored],
                unexplored=None if unexplored is None else unexplored[scored],
            )
            results[place] = _scored(result, score)
        return comparison


class _Work:
    """Who is told which share of a comparison is done, by what its methods were measured to take."""

    def __init__(self, methods: list[Method], n_rows: int, max_rows: int | None, watch: Watch) -> None:
        costs = [method.seconds(n_rows, max_rows) - SECONDS_OF_SCORES for method in methods]
        self._pieces = [*costs, *(SECONDS_OF_SCORES for _ in methods)]
        self._methods, self._watch = methods, watch

    def tell(self, method: Method, doing: str) -> None:
        number = self._methods.index(method)
        begun = number + (len(self._methods) if doing == "scoring" else 0)
        words = f"{doing} {method.title}, {number + 1} of {counted(len(self._methods), 'method')}"
        self._watch.tell(words, sum(self._pieces[:begun]) / sum(self._pieces))


def _fitted(
    method: Method, table: ComparedTable, rows: Codes, priors: list[Prior], told: Codes | None, settings: dict
) -> MethodResult:
    if (reason := method.left_out(priors)) is not None:
        return MethodResult(method, left_out=reason)
    given: Any = None
    if method.uses:
        given = [prior.of_rows(rows, table.n_rows) for prior in priors] or None
        if told is not None and method.by_labels:
            given = told[rows]
    result = MethodResult(method)
    with _isolated(method) as outcome:
        began = time.perf_counter()
        estimator = method.make(**settings)
        embedding = estimator.fit_transform(table.rows_of_input(rows), prior=given)
        seconds = time.perf_counter() - began
        points = as_matrix("embedding", embedding, len(rows))
        remarks = remarks_on_known(method.title, estimator)
        result = replace(result, embedding=points, rows=rows, seconds=seconds, remarks=remarks)
    return replace(result, left_out=outcome.get("reason"), remarks=(*result.remarks, *outcome["remarks"]))


def _scored(result: MethodResult, score: Callable[[], dict[str, float | None]]) -> MethodResult:
    scores = result.scores
    with _isolated(result.method) as outcome:
        scores = score()
    remarks = [*result.remarks, *outcome["remarks"], *([outcome["reason"]] if "reason" in outcome else [])]
    return replace(result, scores=scores, remarks=tuple(remarks))


@contextmanager
def _isolated(method: Method) -> Iterator[dict[str, Any]]:
    """A block whose failure ends in `reason`, one sentence, and whose warnings end in `remarks`."""
    outcome: dict[str, Any] = {"remarks": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield outcome
        except ImapceError as problem:
            outcome["reason"] = problem.sentence
        # Whatever a method raises, an hour of the others' work must not be lost with it.
        except Exception as problem:
            outcome["reason"] = (
                f"It failed with {type(problem).__name__}: {' '.join(str(problem).split()) or 'no words'}."
            )
    told = (f"{method.title}: {' '.join(str(warning.message).split())}" for warning in caught)
    outcome["remarks"] = list(dict.fromkeys(told))


def _unexplored(priors: list[Prior], n_rows: int) -> Mask | None:
    subsets = [prior.row_mask(n_rows) for prior in priors if prior.names_rows]
    return ~np.logical_or.reduce(subsets) if subsets else None


def _known_of_rows(table: ComparedTable, priors: list[Prior]) -> dict[str, NDArray[Any]]:
    """What the priors say of each row: classes by name, or numbers for a column of many values.

    Up to 20 combinations of classes are one column; beyond that every column is scored on its own.
    """
    columns: dict[str, NDArray[Any]] = {}
    names = np.asarray(table.names(), dtype=object)
    n_labels = 0
    for prior in priors:
        if prior.names_rows:
            number = sum(name.startswith("known rows") for name in columns) + 1
            rows = prior.row_mask(table.n_rows)
            columns["known rows" if number == 1 else f"known rows {number}"] = np.where(rows, "known", "rest")
        if (labels := prior.read_labels(table.n_rows)) is not None:
            n_labels += 1
            columns[labels.title or ("known labels" if n_labels == 1 else f"known labels {n_labels}")] = labels.entries
        for group in np.unique(table.groups[prior.column_mask(table.reader)]):
            places = np.flatnonzero(table.groups == group)
            values = table.dense(places)
            if len(places) > 1:
                name = str(names[places[0]]).split("=", 1)[0]
                classes = np.array([str(label)[len(name) + 1 :] for label in names[places]], dtype=object)
                columns[name] = classes[values.argmax(axis=1)].astype(str)
            else:
                column = values[:, 0]
                columns[str(names[places[0]])] = column if is_measurement(column) else _as_text(column)
    columns = {name: column.astype(str) if _is_whole_text(column) else column for name, column in columns.items()}
    if len(columns) > 1 and all(column.dtype.kind == "U" for column in columns.values()):
        combined = np.array([" · ".join(row) for row in zip(*columns.values(), strict=True)])
        if len(np.unique(combined)) <= MOST_COMBINED_CLASSES:
            return {" × ".join(columns): combined}
    return columns


def _is_whole_text(column: NDArray[Any]) -> bool:
    """Whether classes by name have one for every row, so that they can be combined with others."""
    return column.dtype.kind == "O" and all(isinstance(entry, str) for entry in column)


def _as_text(column: Array) -> NDArray[np.str_]:
    values, codes = np.unique(column, return_inverse=True)
    return np.array([f"{value:g}" for value in values])[codes]


class ComparedTable:
    """X as every estimator here reads it, for what a comparison itself needs of it: attributes, samples of rows."""

    def __init__(
        self,
        X: Any,
        *,
        missing: Literal["error", "mean"] = "error",
        standardize: bool = True,
        named: Collection[str] | None = (),
    ):
        require_in_memory(X, "compare")
        self.X, self.standardize = as_read(X, named=named), standardize
        self.reader, self.matrix = Reader.learn(self.X, missing=missing)
        self.n_rows, self.n_features = self.matrix.shape

    @property
    def groups(self) -> Codes:
        """For each encoded column the column of X it came from."""
        groups = self.reader.groups
        return np.arange(self.n_features) if groups is None else groups

    def dense(self, columns: Codes) -> Array:
        chosen = self.matrix[:, columns]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen, dtype=np.float64)

    def names(self) -> list[str]:
        return self.reader.names

    def scaled(self, rows: Codes) -> Array | None:
        """(x − mean)/σ of some rows, with the means and scales of all; None for a sparse matrix."""
        if sparse.issparse(self.matrix):
            return None
        matrix = np.asarray(self.matrix, dtype=np.float64)
        # Values beyond 1e150 overflow; the methods refuse them in their own words.
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = matrix.mean(axis=0), matrix.var(axis=0)
        scale = column_scales(mean, variance, self.reader.groups, standardize=self.standardize)
        return (matrix[rows] - mean) * np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)

    def rows_of_input(self, rows: Codes) -> Any:
        """These rows of X as the kind of table it is."""
        if len(rows) == self.n_rows:
            return self.X
        if isinstance(self.X, NamedMatrix):
            return self.X.of_rows(rows)
        if is_table(self.X):
            return nw.from_native(native_table(self.X), eager_only=True)[rows.tolist()].to_native()
        return sparse.csr_array(self.X)[rows] if sparse.issparse(self.X) else np.asarray(self.X)[rows]


def notes_on(
    table: ComparedTable,
    priors: list[Prior],
    known: dict[str, NDArray[Any]],
    known_labels: Any,
    labels: NDArray[Any] | None,
    unexplored: Mask | None,
    scored: Codes,
) -> list[str]:
    """How the scores of this comparison were made, one sentence each."""
    notes = []
    numeric = [name for name, column in known.items() if is_measurement(column)]
    if not known:
        why = "a background table has no class for the rows of X" if priors else "no prior was given"
        notes.append(f"Scores of what is known are empty: {why}.")
    elif known_labels is None and any(prior.is_background for prior in priors):
        notes.append("Scores of what is known are about columns and rows; of a background table there is no score.")
    if len(known) > 1:
        notes.append(f"Of the {len(known)} known columns the one that shows most in a view counts.")
    if numeric:
        many = ", ".join(numeric[:5]) + (", ..." if len(numeric) > 5 else "")
        notes.append(f"Measurements ({many}): NLS on 10 quantile bins, read back as R², whose chance is 0.")
    classes = (column[scored][stated(column[scored])] for column in known.values() if not is_measurement(column))
    bins = [len(scored) // QUANTILE_BINS] if numeric else []
    if min([*(np.bincount(as_codes("known", column, None)).min() for column in classes), *bins], default=101) <= 100:
        notes.append(
            "NLS asks for up to 100 neighbours; a known class of fewer rows is above 0 even where it lies apart."
        )
    read = None if labels is None else class_labels(labels, table.n_rows)
    if read is None or isinstance(read, str):
        why = "no labels were given" if read is None else read
        notes.append(f"The silhouette is that of k-means clusters, the best k from 2 to 10, since {why}.")
    else:
        notes.append("Silhouette, 15-NN accuracy and k-means NMI are those of the labels.")
    if unexplored is not None:
        notes.append("Structure is scored on the rows that are not known.")
    if len(scored) < table.n_rows:
        notes.append(f"All methods are scored on the same {len(scored):,} of {table.n_rows:,} rows.")
    if sparse.issparse(table.matrix):
        notes.append("Trustworthiness is empty: X is sparse.")
    return notes


def remarks_on_known(title: str, estimator: Any) -> tuple[str, ...]:
    """What a fitted method tells itself of what is left of the known: what it explained away, and how well that is read
    back from its view and its clusters.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> remarks_on_known("IMAPCE", IMAPCE().fit(X, prior=Attributes([1])))[0].split(":")[0]
    'IMAPCE explained x1 away'
    """
    if getattr(estimator, "read_back_", None) is None:
        return ()
    names, told = explained_away(estimator), PriorLeakage.from_model(estimator)
    lead = f"{title} explained {listing(names, 5)} away" if names else title
    if told is None:
        return ()
    sentence = replace(told, prior="").message
    return (f"{lead}: {sentence[0].lower()}{sentence[1:]}",)


def note_on_slow(priors: list[Prior], n_rows: int, max_rows: int | None) -> list[str]:
    """What the methods that were not asked for would add, and about how long they would take; nothing if none would.

    >>> note_on_slow([], 2_000, None)[0].split(":")[0]
    'The fast methods were compared'
    """
    slow = [method for method in METHODS.values() if method.cost is not None and method.left_out(priors) is None]
    if not slow:
        return []
    seconds = sum(method.seconds(n_rows, max_rows) for method in slow)
    names = listing(method.title for method in slow)
    time = f" adds {names}, and would take {roughly(seconds)} more."
    return [Sentence("The fast methods were compared: ", Argument("methods", "all"), time)]
