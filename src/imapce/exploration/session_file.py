"""Sessions on disk: a `Record` in the archive format, JSON and .npy in one zip.

A session holds a print of its data instead of the data: number of rows, column names, the mean and variance of every
column and a hash over all values in order. On loading, what differs is named.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.archive import archived, in_json, read_archive
from imapce.errors import FileFormatError, InvalidValueError
from imapce.exploration.explained_file import (
    TellsExplained,
    explained_of_file,
    of_step,
)
from imapce.exploration.old_file import with_numbers, with_todays_names
from imapce.exploration.record import (
    KINDS_OF_REGROUPING,
    AcceptedStep,
    DataPrint,
    Feature,
    Move,
    Record,
    Regrouping,
    TakenCluster,
    clusters_after,
)
from imapce.exploration.verdict import (
    require_granularity,
    require_number_of_clusters,
    structure_of_file,
    told_structure,
)
from imapce.priors.effect import Explained
from imapce.priors.kinds import prior_of_json

Arrays = dict[str, NDArray]

# Files of version 1 have no numbers of clusters, and their views explained nothing away.
SESSION_VERSION, OLDEST_VERSION = 2, 1


def session_bytes(record: Record) -> bytes:
    """A session as a file holds it; the bytes depend on its state alone."""
    arrays: Arrays = {
        "data_mean": record.data.mean,
        "data_variance": record.data.variance,
        "known_at_start": record.known_at_start,
    }
    explained = TellsExplained(arrays)
    steps = [_told_move(i, move, arrays, explained) for i, move in enumerate(record.steps)]
    priors = [prior.to_json(i, arrays, len(record.known_at_start)) for i, prior in enumerate(record.priors)]
    header = {
        "parameters": record.parameters,
        "min_cluster_size": record.min_cluster_size,
        "max_clusters": record.max_clusters,
        "random_state": record.random_state,
        "method": record.method,
        "clusterer": record.clusterer,
        "refine": record.refine,
        "granularity": record.granularity,
        "n_clusters": record.n_clusters,
        "ignores_structure": record.ignores_structure,
        "numbers": None if record.numbers is None else list(record.numbers),
        "subset_weight": record.subset_weight,
        "priors": priors,
        "columns": list(record.data.columns),
        "n_rows": record.data.n_rows,
        "fingerprint": record.data.digest,
        "explained": explained.told,
        "steps": steps,
    }
    return archived("session", SESSION_VERSION, header, arrays)


def _told_move(i: int, move: Move, arrays: Arrays, explained: TellsExplained) -> dict[str, Any]:
    clusters = []
    for j, cluster in enumerate(move.clusters):
        arrays[f"step{i}_cluster{j}_rows"] = cluster.rows
        clusters.append(
            {
                "number": cluster.number,
                "distinctness": cluster.distinctness,
                "chosen": cluster.chosen,
                "features": [[f.name, f.difference, f.loading] for f in cluster.features],
                **({} if cluster.name is None else {"name": cluster.name}),
                **({} if cluster.stability is None else {"stability": cluster.stability}),
            }
        )
    if isinstance(move, AcceptedStep):
        return _told_step(i, move, clusters, arrays, explained)
    for j, rows in enumerate(move.pieces):
        arrays[f"step{i}_piece{j}_rows"] = rows
    return {
        "regrouping": move.kind,
        "replaced": list(move.replaced),
        "words": move.words,
        "pieces": len(move.pieces),
        "numbers": list(move.numbers),
        "clusters": clusters,
    }


def _told_step(
    i: int, step: AcceptedStep, clusters: list[dict[str, Any]], arrays: Arrays, explained: TellsExplained
) -> dict[str, Any]:
    arrays[f"step{i}_components"] = step.components
    arrays[f"step{i}_mean"], arrays[f"step{i}_scale"] = step.mean, step.scale
    told = {
        "objective": in_json(step.objective),
        "kurtosis": in_json(step.kurtosis),
        "view": step.view,
        "clusters": clusters,
    }
    if step.structure is not None:
        told["structure"] = told_structure(step.structure)
    if step.read_back is not None:
        told["read_back"] = step.read_back
    if step.explained is not None:
        told["explained"] = explained.place_of(step.explained, i)
    return told if step.p_value is None else {**told, "p_value": step.p_value}


def read_session(path: str | os.PathLike[str]) -> Record:
    """The session in `path`; damaged, foreign and hostile files are refused with one sentence."""
    header, arrays = read_archive(path, "session", SESSION_VERSION, oldest=OLDEST_VERSION)
    try:
        return _record(header, arrays)
    except InvalidValueError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise not_whole(path, error) from error


def not_whole(path: str | os.PathLike[str], error: Exception) -> FileFormatError:
    """The sentence for a file that is a session and cannot be gone on with."""
    reason = " ".join(str(error).split())
    return FileFormatError(f"{str(path)!r} does not hold a whole imapce session ({reason}).")


def _record(header: dict[str, Any], arrays: Arrays) -> Record:
    n, columns = int(header["n_rows"]), tuple(header["columns"])
    data = DataPrint(n, columns, arrays["data_mean"], arrays["data_variance"], str(header["fingerprint"]))
    if data.mean.shape != (len(columns),) or data.variance.shape != (len(columns),):
        raise ValueError("the means and variances do not fit the columns")
    start = arrays["known_at_start"]
    if start.shape != (n,) or start.dtype != bool:
        raise ValueError("the rows known at the start do not fit the data")
    parameters = with_todays_names(header["parameters"], header["version"])
    k = parameters["n_components"]
    explained = explained_of_file(header.get("explained", []), arrays, (n, len(columns)))
    moves: list[Move] = []
    for i, stored in enumerate(with_numbers(header["steps"], header["version"])):
        before = clusters_after(moves)
        if "regrouping" in stored:
            moves.append(_regrouping(i, stored, arrays, before, start))
        else:
            seen = of_step(i, stored.get("explained"), explained, arrays)
            moves.append(_step(i, stored, arrays, before, start, (k, len(columns)), seen))
    return Record(
        data,
        tuple(moves),
        start,
        priors=tuple(prior_of_json(i, stored, arrays, (n, len(columns))) for i, stored in enumerate(header["priors"])),
        subset_weight=header["subset_weight"],
        parameters=parameters,
        min_cluster_size=header["min_cluster_size"],
        max_clusters=header["max_clusters"],
        random_state=header["random_state"],
        method=header.get("method", "auto"),
        # HDBSCAN of a view is gone; what it found stays, and what is left is looked for by the mixture.
        clusterer="dpgmm" if header["clusterer"] == "hdbscan" else header["clusterer"],
        # Sessions written before clusters were refined go on as they began.
        refine=header.get("refine", False),
        # Sessions written before these could be asked for.
        granularity=require_granularity(header.get("granularity", "auto")),
        n_clusters=require_number_of_clusters(header.get("n_clusters")),
        ignores_structure=bool(header.get("ignores_structure", False)),
        numbers=_range_of(header.get("numbers")),
    )


def _range_of(stored: Any) -> tuple[int, int] | None:
    if stored is None:
        return None
    first, end = (_whole(one) for one in stored)
    if end < first:
        raise ValueError(f"the numbers of its clusters end at {end} before {first}")
    return first, end


def _whole(stored: Any) -> int:
    if not isinstance(stored, int) or isinstance(stored, bool) or not 0 <= stored < 2**53:
        raise ValueError(f"a cluster has the number {stored!r}")
    return stored


def _taken(clusters: list[TakenCluster], start: NDArray) -> NDArray:
    """(n,), the rows known at the start or in a cluster."""
    taken = start.copy()
    for cluster in clusters:
        taken[cluster.rows] = True
    return taken


def _regrouping(
    i: int, stored: dict[str, Any], arrays: Arrays, before: list[TakenCluster], start: NDArray
) -> Regrouping:
    """One regrouping of the clusters `before` it: rows may join clusters, and none leaves them."""
    kind, replaced = stored["regrouping"], tuple(_whole(number) for number in stored["replaced"])
    if kind not in KINDS_OF_REGROUPING:
        raise ValueError(f"step {i} is of the kind {kind!r}")
    if len(set(replaced)) != len(replaced) or not set(replaced) <= {cluster.number for cluster in before}:
        raise ValueError(f"step {i} regroups clusters that are not there")
    others = [cluster for cluster in before if cluster.number not in replaced]
    taken = _taken(others, start)
    clusters = _clusters(i, stored, arrays, taken, others)
    if not all(taken[cluster.rows].all() for cluster in before):
        raise ValueError(f"step {i} loses rows of clusters")
    pieces = tuple(arrays[f"step{i}_piece{j}_rows"] for j in range(int(stored["pieces"])))
    numbers = tuple(_whole(number) for number in stored["numbers"])
    if len(numbers) != len(pieces) or len(set(numbers)) != len(numbers):
        raise ValueError(f"the pieces of step {i} have no number each")
    seen = _taken(before, start)
    for rows in pieces:
        if not _are_unexplored(rows, seen):
            raise ValueError(f"the pieces of step {i} are not unexplored rows of the data")
        seen[rows] = True
    return Regrouping(
        kind,
        replaced,
        clusters,
        words=str(stored["words"]),
        pieces=tuple(p.astype(np.intp) for p in pieces),
        numbers=numbers,
    )


def _are_unexplored(rows: NDArray, taken: NDArray) -> bool:
    inside = rows.ndim == 1 and rows.dtype.kind == "i" and len(rows) and 0 <= rows.min() <= rows.max() < len(taken)
    return bool(inside) and not taken[rows].any() and len(np.unique(rows)) == len(rows)


def _clusters(
    i: int, stored: dict[str, Any], arrays: Arrays, taken: NDArray, others: list[TakenCluster]
) -> tuple[TakenCluster, ...]:
    """The clusters of one step beside those that stay; their rows are marked in `taken`."""
    clusters = []
    had = {cluster.number for cluster in others}
    for j, one in enumerate(stored["clusters"]):
        rows = arrays[f"step{i}_cluster{j}_rows"]
        if not _are_unexplored(rows, taken):
            raise ValueError(f"the rows of cluster {j} in step {i} are not unexplored rows of the data")
        taken[rows] = True
        features = tuple(Feature(str(name), float(diff), float(load)) for name, diff, load in one["features"])
        distinctness = None if one["distinctness"] is None else float(one["distinctness"])
        name = None if one.get("name") is None else str(one["name"])
        stability = _share(one.get("stability"), j)
        number, chosen = _whole(one["number"]), str(one["chosen"])
        if number in had:
            raise ValueError(f"two clusters have the number {number} after step {i}")
        had.add(number)
        clusters.append(
            TakenCluster(
                rows.astype(np.intp),
                distinctness,
                features,
                number=number,
                chosen=chosen,
                name=name,
                stability=stability,
            )
        )
    return tuple(clusters)


def _step(
    i: int,
    stored: dict[str, Any],
    arrays: Arrays,
    before: list[TakenCluster],
    start: NDArray,
    shape: tuple[int, int],
    explained: Explained | None,
) -> AcceptedStep:
    """One accepted step of rows that were in none of the clusters `before` it."""
    clusters = _clusters(i, stored, arrays, _taken(before, start), before)
    components, mean, scale = (arrays[f"step{i}_{part}"] for part in ("components", "mean", "scale"))
    if components.shape != shape or mean.shape != shape[1:] or scale.shape != shape[1:] or not clusters:
        raise ValueError(f"step {i} does not fit the data")
    return AcceptedStep(
        clusters,
        components,
        mean=mean,
        scale=scale,
        objective=float(stored["objective"]),
        kurtosis=float(stored["kurtosis"]),
        view=int(stored["view"]),
        p_value=_probability(stored.get("p_value"), i),
        structure=structure_of_file(stored.get("structure")),
        explained=explained,
        read_back=_read_back(stored.get("read_back")),
    )


def _read_back(stored: Any) -> dict[str, float | None] | None:
    if stored is None:
        return None
    view, clusters, chance = (stored[part] for part in ("view", "clusters", "chance"))
    return {"view": float(view), "clusters": None if clusters is None else float(clusters), "chance": float(chance)}


def _probability(stored: Any, step: int) -> float | None:
    if stored is not None and not 0 < float(stored) <= 1:
        raise ValueError(f"the p-value of step {step} is {stored!r}")
    return None if stored is None else float(stored)


def _share(stored: Any, cluster: int) -> float | None:
    if stored is not None and not 0 <= float(stored) <= 1:
        raise ValueError(f"the stability of cluster {cluster} is {stored!r}")
    return None if stored is None else float(stored)
