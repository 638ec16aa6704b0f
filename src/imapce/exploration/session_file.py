"""Sessions on disk: a `Record` in the archive format, JSON and .npy in one zip.

A session holds a print of its data instead of the data (`data.py`); on loading, what differs is named. What was taken
from the rows before a view (`Explained`) is kept once for all steps that share it: as long as nobody changes what is
known, they differ in where they are centred and in nothing else. What a file says is held to what a session can be:
every row is taken at most once, every cluster has its own number.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.archive import archived, in_json, read_archive
from imapce.common.arrays import Mask
from imapce.errors import FileFormatError, InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import parameters_of_file
from imapce.exploration.data import DataPrint
from imapce.exploration.record import (
    KINDS_OF_REGROUPING,
    AcceptedStep,
    Feature,
    Move,
    Moves,
    Record,
    Regrouping,
    TakenCluster,
    clusters_after,
)
from imapce.exploration.verdict import structure_of_file, told_structure
from imapce.priors.effect import Effect, Explained
from imapce.priors.kinds import prior_of_json
from imapce.priors.labels import LabelCode, ReadLabels
from imapce.tables.scales import SCALES

Arrays = dict[str, NDArray]

# Files of version 1 have no numbers of clusters, and their views explained nothing away. Those before version 3 compare
# a cluster with the rows that were left at its step, which is not what is told now: they tell nothing of it.
SESSION_VERSION, OLDEST_VERSION = 3, 1
SETTINGS = (
    *("min_cluster_size", "max_clusters", "random_state", "method", "clusterer", "refine", "granularity"),
    *("n_clusters", "ignores_structure"),
)
# Files written before there was a setting lack it, and go on as they began.
BEFORE = {"method": "auto", "refine": False, "granularity": "auto", "n_clusters": None, "ignores_structure": False}


def session_bytes(record: Record) -> bytes:
    """A session as a file holds it; the bytes depend on its state alone."""
    data = record.data
    assert data is not None
    arrays = {"data_mean": data.mean, "data_variance": data.variance, "known_at_start": record.known_at_start}
    writer = _Writer(arrays)
    steps = [writer.move(i, move) for i, move in enumerate(record.moves)]
    header = {
        "parameters": record.parameters,
        **{name: getattr(record, name) for name in SETTINGS},
        "numbers": None if record.numbers is None else list(record.numbers),
        "subset_weight": record.subset_weight,
        "priors": [prior.to_json(i, arrays, data.n_rows) for i, prior in enumerate(record.priors)],
        "columns": list(data.columns),
        "n_rows": data.n_rows,
        "fingerprint": data.digest,
        # Only where there is one, so that other files are as they were.
        **({"transform": dict(data.transform)} if data.transform else {}),
        "explained": writer.explanations,
        "steps": steps,
    }
    return archived("session", SESSION_VERSION, header, arrays)


def read_session(path: str | os.PathLike[str]) -> Record:
    """The session in `path`; damaged, foreign and hostile files are refused with one sentence."""
    header, arrays = read_archive(path, "session", SESSION_VERSION, oldest=OLDEST_VERSION)
    try:
        return _Reader(header, arrays).record()
    except InvalidValueError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise not_whole(path, error) from error


def not_whole(path: str | os.PathLike[str], error: Exception) -> FileFormatError:
    """The sentence for a file that is a session and cannot be gone on with."""
    reason = " ".join(str(error).split())
    return FileFormatError(f"{str(path)!r} does not hold a whole imapce session ({reason}).")


class _Writer:
    """Moves as entries of the header; what is large goes to `arrays`."""

    def __init__(self, arrays: Arrays):
        self.explanations: list[dict[str, Any]] = []
        self._arrays = arrays
        self._written: list[Explained] = []

    def move(self, i: int, move: Move) -> dict[str, Any]:
        clusters = []
        for j, cluster in enumerate(move.clusters):
            self._arrays[f"step{i}_cluster{j}_rows"] = cluster.rows
            optional = {name: getattr(cluster, name) for name in ("name", "stability", "group", "overlap")}
            clusters.append(
                {
                    "number": cluster.number,
                    "distinctness": cluster.distinctness,
                    "chosen": cluster.chosen,
                    "features": [told_feature(feature) for feature in cluster.features],
                    **{name: value for name, value in optional.items() if value is not None},
                }
            )
        if isinstance(move, AcceptedStep):
            return self._step(i, move, clusters)
        for j, rows in enumerate(move.pieces):
            self._arrays[f"step{i}_piece{j}_rows"] = rows
        return {
            "regrouping": move.kind,
            "replaced": list(move.replaced),
            "words": move.words,
            "pieces": len(move.pieces),
            "numbers": list(move.numbers),
            "clusters": clusters,
        }

    def _step(self, i: int, step: AcceptedStep, clusters: list[dict[str, Any]]) -> dict[str, Any]:
        for part in ("components", "mean", "scale"):
            self._arrays[f"step{i}_{part}"] = getattr(step, part)
        optional = {
            "structure": None if step.structure is None else told_structure(step.structure),
            "read_back": step.read_back,
            "explained": None if step.explained is None else self._explanation(i, step.explained),
            "p_value": step.p_value,
        }
        return {
            "objective": in_json(step.objective),
            "kurtosis": in_json(step.kurtosis),
            "view": step.view,
            "clusters": clusters,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _explanation(self, i: int, explained: Explained) -> int:
        """Where the explanation of a step stands in the header; its centre is the step's own."""
        self._arrays[f"step{i}_centre"] = explained.centre
        for place, written in enumerate(self._written):
            if written.effect == explained.effect and written.labels == explained.labels:
                return place
        name = f"explained{len(self._written)}"
        self._written.append(explained)
        self._arrays[f"{name}_columns"] = explained.effect.columns
        self._arrays[f"{name}_weights"] = explained.effect.weights
        codes = []
        for c, code in enumerate(explained.effect.codes):
            self._arrays[f"{name}_code{c}"] = code.centre
            names = None if code.names is None else list(code.names)
            codes.append({"names": names, "unit": code.unit, "title": code.title})
        labels = [read.to_json(f"{name}_labels{c}", self._arrays) for c, read in enumerate(explained.labels)]
        self.explanations.append({"codes": codes, "labels": labels})
        return len(self._written) - 1


class _Reader:
    """The record of a header and its arrays; what no session can be is refused."""

    def __init__(self, header: dict[str, Any], arrays: Arrays):
        self._header, self._arrays = header, arrays
        columns = tuple(header["columns"])
        self._shape = (int(header["n_rows"]), len(columns))
        self._data = DataPrint(
            self._shape[0],
            columns,
            arrays["data_mean"],
            arrays["data_variance"],
            str(header["fingerprint"]),
            tuple(_transform(header.get("transform", {})).items()),
        )
        if self._data.mean.shape != self._shape[1:] or self._data.variance.shape != self._shape[1:]:
            raise ValueError("the means and variances do not fit the columns")
        self._start = arrays["known_at_start"]
        if self._start.shape != self._shape[:1] or self._start.dtype != bool:
            raise ValueError("the rows known at the start do not fit the data")
        parameters = header["parameters"] if header["version"] > 1 else parameters_of_file(header["parameters"])
        # A file has no infinity.
        infinite = {"alpha": np.inf} if parameters.get("alpha") == in_json(np.inf) else {}
        self._estimator = IMAPCE(**parameters | infinite)
        stored = enumerate(header.get("explained", []))
        self._explanations = [self._explanation(f"explained{i}", f"explanation {i}", one) for i, one in stored]

    def record(self) -> Record:
        header = self._header
        moves: list[Move] = []
        for i, stored in enumerate(header["steps"] if header["version"] > 1 else _with_numbers(header["steps"])):
            before = clusters_after(moves)
            read = self._regrouping if "regrouping" in stored else self._step
            moves.append(read(i, stored, before))
        settings = {name: header.get(name, BEFORE[name]) if name in BEFORE else header[name] for name in SETTINGS}
        if settings["clusterer"] == "hdbscan":
            # HDBSCAN of a view is gone; what it found stays, and what is left is looked for by the mixture.
            settings["clusterer"] = "dpgmm"
        numbers = header.get("numbers")
        if numbers is not None:
            first, end = map(_whole, numbers)
            if end < first:
                raise ValueError(f"the numbers of its clusters end at {end} before {first}")
            numbers = (first, end)
        priors = enumerate(header["priors"])
        return Record(
            Moves(self._shape[0], tuple(moves)),
            self._start,
            priors=tuple(prior_of_json(i, stored, self._arrays, self._shape) for i, stored in priors),
            subset_weight=header["subset_weight"],
            estimator=self._estimator,
            data=self._data,
            numbers=numbers,
            **settings,
        )

    def _step(self, i: int, stored: dict[str, Any], before: list[TakenCluster]) -> AcceptedStep:
        """One accepted step of rows that were in none of the clusters `before` it."""
        clusters = self._clusters(i, stored, self._taken(before), before)
        components, mean, scale = (self._arrays[f"step{i}_{part}"] for part in ("components", "mean", "scale"))
        shape = (self._estimator.n_components, self._shape[1])
        if components.shape != shape or mean.shape != shape[1:] or scale.shape != shape[1:] or not clusters:
            raise ValueError(f"step {i} does not fit the data")
        read_back = stored.get("read_back")
        return AcceptedStep(
            clusters,
            components,
            mean=mean,
            scale=scale,
            objective=float(stored["objective"]),
            kurtosis=float(stored["kurtosis"]),
            view=int(stored["view"]),
            p_value=_share(stored.get("p_value"), f"the p-value of step {i}", above=0.0),
            structure=structure_of_file(stored.get("structure")),
            explained=self._explained(i, stored.get("explained")),
            read_back=None if read_back is None else _read_back(**read_back),
        )

    def _regrouping(self, i: int, stored: dict[str, Any], before: list[TakenCluster]) -> Regrouping:
        """One regrouping of the clusters `before` it: rows may join clusters, and none leaves them."""
        kind, replaced = stored["regrouping"], tuple(map(_whole, stored["replaced"]))
        if kind not in KINDS_OF_REGROUPING:
            raise ValueError(f"step {i} is of the kind {kind!r}")
        if len(set(replaced)) != len(replaced) or not set(replaced) <= {cluster.number for cluster in before}:
            raise ValueError(f"step {i} regroups clusters that are not there")
        others = [cluster for cluster in before if cluster.number not in replaced]
        taken = self._taken(others)
        clusters = self._clusters(i, stored, taken, others)
        if not all(taken[cluster.rows].all() for cluster in before):
            raise ValueError(f"step {i} loses rows of clusters")
        numbers, seen = tuple(map(_whole, stored["numbers"])), self._taken(before)
        if len(numbers) != int(stored["pieces"]) or len(set(numbers)) != len(numbers):
            raise ValueError(f"the pieces of step {i} have no number each")
        pieces = tuple(
            self._unexplored_rows(f"step{i}_piece{j}_rows", seen, f"the pieces of step {i}")
            for j in range(len(numbers))
        )
        return Regrouping(kind, replaced, clusters, words=str(stored["words"]), pieces=pieces, numbers=numbers)

    def _clusters(
        self, i: int, stored: dict[str, Any], taken: Mask, others: list[TakenCluster]
    ) -> tuple[TakenCluster, ...]:
        """The clusters of one step beside those that stay; their rows are marked in `taken`."""
        clusters = []
        had = {cluster.number for cluster in others}
        for j, cluster in enumerate(stored["clusters"]):
            number = _whole(cluster["number"])
            rows = self._unexplored_rows(f"step{i}_cluster{j}_rows", taken, f"the rows of cluster {j} in step {i}")
            if number in had:
                raise ValueError(f"two clusters have the number {number} after step {i}")
            had.add(number)
            clusters.append(
                TakenCluster(
                    rows,
                    _number(cluster["distinctness"]),
                    tuple(map(feature_of_file, cluster["features"])) if self._header["version"] > 2 else (),
                    number=number,
                    chosen=str(cluster["chosen"]),
                    name=None if cluster.get("name") is None else str(cluster["name"]),
                    stability=_share(cluster.get("stability"), f"the stability of cluster {j}"),
                    group=None if cluster.get("group") is None else _whole(cluster["group"]),
                    overlap=_share(self._overlap(cluster), f"the overlap of cluster {j}"),
                )
            )
        return tuple(clusters)

    def _overlap(self, cluster: dict[str, Any]) -> float | None:
        """The overlap of a cluster; older files have the distance to its nearest, or a sum that nothing comes of."""
        if self._header["version"] > 2:
            return _number(cluster.get("overlap"))
        distance, header = _number(cluster["distinctness"]), self._header
        sums = header.get("method", BEFORE["method"]) == "paper" or (
            header["clusterer"] == "dpgmm" and not header.get("refine", BEFORE["refine"])
        )
        return None if not distance or sums else float(np.exp(-max(distance, 0.0)))

    def _taken(self, clusters: list[TakenCluster]) -> Mask:
        """(n,), the rows known at the start or in a cluster."""
        taken = self._start.copy()
        for cluster in clusters:
            taken[cluster.rows] = True
        return taken

    def _unexplored_rows(self, name: str, taken: Mask, what: str) -> NDArray[np.intp]:
        """Rows that nobody has, which are marked in `taken`."""
        rows = self._arrays[name]
        inside = rows.ndim == 1 and rows.dtype.kind == "i" and len(rows) and 0 <= rows.min() <= rows.max() < len(taken)
        if not inside or taken[rows].any() or len(np.unique(rows)) != len(rows):
            raise ValueError(f"{what} are not unexplored rows of the data")
        taken[rows] = True
        return rows.astype(np.intp)

    def _explained(self, i: int, place: Any) -> Explained | None:
        """The explanation of a step, by the place it names."""
        if place is None:
            return None
        if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(self._explanations):
            raise ValueError(f"step {i} names an explanation that is not there")
        explained, centre = self._explanations[place], self._arrays[f"step{i}_centre"]
        if centre.shape != explained.centre.shape or centre.dtype.kind != "f":
            raise ValueError(f"the centre of step {i} does not fit its labels")
        return replace(explained, centre=centre)

    def _explanation(self, name: str, what: str, stored: dict[str, Any]) -> Explained:
        """What was taken from the rows, centred nowhere yet."""
        arrays, (n_rows, n_columns) = self._arrays, self._shape
        columns, weights = arrays[f"{name}_columns"], arrays[f"{name}_weights"]
        inside = columns.ndim == 1 and (not len(columns) or 0 <= columns.min() <= columns.max() < n_columns)
        if columns.dtype.kind != "i" or not inside or len(np.unique(columns)) != len(columns):
            raise ValueError(f"the columns of {what} are not columns of the data")
        codes = tuple(LabelCode.of_file(code, arrays[f"{name}_code{c}"]) for c, code in enumerate(stored["codes"]))
        width = sum(len(code.centre) for code in codes)
        if weights.shape != (len(columns) + width, n_columns) or weights.dtype.kind != "f" or not len(weights):
            raise ValueError(f"the weights of {what} do not fit what it explains")
        told = enumerate(stored["labels"])
        labels = tuple(ReadLabels.from_json(read, f"{name}_labels{c}", arrays, n_rows) for c, read in told)
        if len(labels) != len(codes):
            raise ValueError(f"{what} has other labels than it reads")
        effect = Effect(columns.astype(np.intp), codes, weights)
        if codes:
            try:
                effect.beside(labels)
            except InvalidValueError as problem:
                raise ValueError(f"{what} cannot read its labels") from problem
        return Explained(effect, labels, np.zeros(width))


def told_feature(feature: Feature) -> dict[str, Any]:
    """What sets a cluster apart as a file holds it and JSON tells it."""
    content = {**asdict(feature), "inside": in_json(feature.inside), "outside": in_json(feature.outside)}
    return {name: value for name, value in content.items() if value is not None}


def feature_of_file(stored: dict[str, Any]) -> Feature:
    """What a file tells of a feature."""
    numbers = {name: float(stored[name]) for name in ("inside", "outside", "difference", "strength")}
    level = stored.get("level")
    truths = {name: bool(stored[name]) for name in ("is_missing", "told")}
    level = None if level is None else str(level)
    told: dict[str, Any] = {**numbers, **truths, "level": level}
    return Feature(str(stored["name"]), str(stored["words"]), **told)


def _with_numbers(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The moves of version 1 as they are told now: there clusters had the place in which they were taken for a number,
    and places closed up; now they have numbers in the order of acceptance, which stay when clusters merge.

    >>> taken = {"clusters": [{"chosen": "hand"}, {"chosen": "hand"}]}
    >>> [cluster["number"] for cluster in _with_numbers([taken])[0]["clusters"]]
    [0, 1]
    """
    numbered: list[dict[str, Any]] = []
    now: list[int] = []
    free = 0
    for step in steps:
        # By place: first the numbers of those replaced, then new ones.
        places = [int(place) for place in step.get("replaced", [])]
        if not all(0 <= place < len(now) for place in places):
            raise ValueError("a step regroups clusters that are not there")
        replaced = [now[place] for place in places]
        numbers = replaced[: len(step["clusters"])]
        n_new = len(step["clusters"]) - len(numbers)
        numbers += range(free, free + n_new)
        free += n_new
        gone = set(replaced) - set(numbers)
        now = [number for number in now if number not in gone] + numbers[len(replaced) :]
        pieces = list(range(free, free + int(step.get("pieces", 0))))
        free += len(pieces)
        clusters = [{**one, "number": number} for one, number in zip(step["clusters"], numbers, strict=True)]
        numbered.append({**step, "clusters": clusters, "replaced": replaced, "numbers": pieces})
    return numbered


def _transform(stored: Any) -> dict[str, str]:
    """The scales of columns by their names."""
    if not isinstance(stored, dict) or not set(stored.values()) <= set(SCALES):
        raise ValueError(f"columns are on the scales {stored!r:.80}")
    return stored


def _whole(stored: Any) -> int:
    if not isinstance(stored, int) or isinstance(stored, bool) or not 0 <= stored < 2**53:
        raise ValueError(f"a cluster has the number {stored!r}")
    return stored


def _read_back(view: Any, clusters: Any, chance: Any) -> dict[str, float | None]:
    return {"view": float(view), "clusters": _number(clusters), "chance": float(chance)}


def _number(stored: Any) -> float | None:
    return None if stored is None else float(stored)


def _share(stored: Any, what: str, *, above: float | None = None) -> float | None:
    share = _number(stored)
    if share is not None and (not 0 <= share <= 1 or share == above):
        raise ValueError(f"{what} is {stored!r}")
    return share
