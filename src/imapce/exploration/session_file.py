"""Sessions on disk: a `Record` in the archive format, JSON and .npy in one zip.

A session holds a print of its data instead of the data: number of rows, column names, the mean and variance of every
column and a hash over all values in order. On loading, what differs is named.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.structure import Structure
from imapce.common.archive import archived, in_json, read_archive
from imapce.errors import FileFormatError, InvalidValueError
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
from imapce.priors.kinds import Attributes, Labels, Prior, Samples, Subset, known_labels
from imapce.priors.labels import ReadLabels

Arrays = dict[str, NDArray]

SESSION_VERSION = 1


def session_bytes(record: Record) -> bytes:
    """A session as a file holds it; the bytes depend on its state alone."""
    arrays: Arrays = {
        "data_mean": record.data.mean,
        "data_variance": record.data.variance,
        "known_at_start": record.known_at_start,
    }
    steps = [_told_move(i, move, arrays) for i, move in enumerate(record.steps)]
    priors = [_told_prior(i, prior, arrays) for i, prior in enumerate(record.priors)]
    header = {
        "parameters": record.parameters,
        "min_cluster_size": record.min_cluster_size,
        "max_clusters": record.max_clusters,
        "random_state": record.random_state,
        "clusterer": record.clusterer,
        "refine": record.refine,
        "subset_weight": record.subset_weight,
        "priors": priors,
        "columns": list(record.data.columns),
        "n_rows": record.data.n_rows,
        "fingerprint": record.data.digest,
        "steps": steps,
    }
    return archived("session", SESSION_VERSION, header, arrays)


def _told_move(i: int, move: Move, arrays: Arrays) -> dict[str, Any]:
    clusters = []
    for j, cluster in enumerate(move.clusters):
        arrays[f"step{i}_cluster{j}_rows"] = cluster.rows
        clusters.append(
            {
                "distinctness": cluster.distinctness,
                "chosen": cluster.chosen,
                "features": [[f.name, f.difference, f.loading] for f in cluster.features],
                **({} if cluster.name is None else {"name": cluster.name}),
            }
        )
    if isinstance(move, AcceptedStep):
        return _told_step(i, move, clusters, arrays)
    for j, rows in enumerate(move.pieces):
        arrays[f"step{i}_piece{j}_rows"] = rows
    return {
        "regrouping": move.kind,
        "replaced": list(move.replaced),
        "words": move.words,
        "pieces": len(move.pieces),
        "clusters": clusters,
    }


def _told_step(i: int, step: AcceptedStep, clusters: list[dict[str, Any]], arrays: Arrays) -> dict[str, Any]:
    arrays[f"step{i}_components"] = step.components
    arrays[f"step{i}_mean"], arrays[f"step{i}_scale"] = step.mean, step.scale
    told = {
        "objective": in_json(step.objective),
        "kurtosis": in_json(step.kurtosis),
        "view": step.view,
        "clusters": clusters,
    }
    if step.structure is not None:
        told["structure"] = asdict(step.structure)
    return told if step.p_value is None else {**told, "p_value": step.p_value}


def _told_prior(i: int, prior: Prior, arrays: Arrays) -> dict[str, Any]:
    assert not isinstance(prior, Subset)
    if isinstance(prior, Labels):
        read = known_labels(prior, len(arrays["known_at_start"]))
        arrays[f"labels{i}"] = np.where(read.stated, read.values, 0)
        arrays[f"labels{i}_stated"] = read.stated
        told = {"kind": "erased labels" if prior.erase else "labels", "weight": float(prior.weight)}
        names = None if read.names is None else list(read.names)
        return {**told, "names": names, "title": read.title, "fingerprint": read.digest}
    if isinstance(prior, Samples):
        arrays[f"background{i}"] = np.asarray(prior.background)
        return {"kind": "samples", "weight": float(prior.weight)}
    listed = [prior.columns] if isinstance(prior.columns, (str, int, np.integer)) else list(prior.columns)
    columns = [c if isinstance(c, str) else bool(c) if isinstance(c, (bool, np.bool_)) else int(c) for c in listed]
    # A kind of its own: a reader that cannot erase must refuse the session, not go on with a softer prior.
    kind = "erased attributes" if prior.erase else "attributes"
    return {"kind": kind, "columns": columns, "weight": float(prior.weight)}


def read_session(path: str | os.PathLike[str]) -> Record:
    """The session in `path`; damaged, foreign and hostile files are refused with one sentence."""
    header, arrays = read_archive(path, "session", SESSION_VERSION)
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
    k = header["parameters"]["n_components"]
    moves: list[Move] = []
    for i, stored in enumerate(header["steps"]):
        if "regrouping" in stored:
            moves.append(_regrouping(i, stored, arrays, clusters_after(moves), start))
        else:
            moves.append(_step(i, stored, arrays, _taken(clusters_after(moves), start), (k, len(columns))))
    return Record(
        data,
        tuple(moves),
        start,
        priors=tuple(_prior(i, stored, arrays, (n, len(columns))) for i, stored in enumerate(header["priors"])),
        subset_weight=header["subset_weight"],
        parameters=header["parameters"],
        min_cluster_size=header["min_cluster_size"],
        max_clusters=header["max_clusters"],
        random_state=header["random_state"],
        clusterer=header["clusterer"],
        # Sessions written before clusters were refined go on as they began.
        refine=header.get("refine", False),
    )


def _prior(i: int, stored: dict[str, Any], arrays: Arrays, shape: tuple[int, int]) -> Prior:
    if stored["kind"] in ("labels", "erased labels"):
        return Labels(_labels(i, stored, arrays, shape[0]), weight=stored["weight"], erase=stored["kind"] != "labels")
    if stored["kind"] in ("attributes", "erased attributes"):
        erase = stored["kind"] == "erased attributes"
        return Attributes(stored["columns"], weight=stored["weight"], erase=erase)
    background = arrays[f"background{i}"]
    if background.ndim != 2 or background.shape[1] != shape[1]:
        raise ValueError("a background does not fit the columns")
    return Samples(background, weight=stored["weight"])


def _labels(i: int, stored: dict[str, Any], arrays: Arrays, n_rows: int) -> ReadLabels:
    """Labels as they were understood, held to their fingerprint."""
    values, stated = arrays[f"labels{i}"], arrays[f"labels{i}_stated"]
    names = None if stored["names"] is None else tuple(map(str, stored["names"]))
    if values.shape != (n_rows,) or stated.shape != (n_rows,) or stated.dtype != bool:
        raise ValueError("the labels do not fit the rows")
    if names is None:
        values = np.where(stated, values.astype(np.float64), np.nan)
    else:
        values = np.where(stated, values.astype(np.intp), -1)
    title = stored["title"]
    labels = ReadLabels(names, values, None if title is None else str(title))
    if labels.digest != stored["fingerprint"]:
        raise ValueError("the labels are not those of their fingerprint")
    return labels


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
    kind, replaced = stored["regrouping"], tuple(int(number) for number in stored["replaced"])
    if kind not in KINDS_OF_REGROUPING:
        raise ValueError(f"step {i} is of the kind {kind!r}")
    if len(set(replaced)) != len(replaced) or not all(0 <= number < len(before) for number in replaced):
        raise ValueError(f"step {i} regroups clusters that are not there")
    others = [cluster for number, cluster in enumerate(before) if number not in replaced]
    taken = _taken(others, start)
    clusters = _clusters(i, stored, arrays, taken)
    if not all(taken[before[number].rows].all() for number in replaced):
        raise ValueError(f"step {i} loses rows of clusters")
    pieces = tuple(arrays[f"step{i}_piece{j}_rows"] for j in range(int(stored["pieces"])))
    seen = _taken(before, start)
    for rows in pieces:
        if not _are_unexplored(rows, seen):
            raise ValueError(f"the pieces of step {i} are not unexplored rows of the data")
        seen[rows] = True
    return Regrouping(
        kind, replaced, clusters, words=str(stored["words"]), pieces=tuple(p.astype(np.intp) for p in pieces)
    )


def _are_unexplored(rows: NDArray, taken: NDArray) -> bool:
    inside = rows.ndim == 1 and rows.dtype.kind == "i" and len(rows) and 0 <= rows.min() <= rows.max() < len(taken)
    return bool(inside) and not taken[rows].any() and len(np.unique(rows)) == len(rows)


def _clusters(i: int, stored: dict[str, Any], arrays: Arrays, taken: NDArray) -> tuple[TakenCluster, ...]:
    """The clusters of one step; their rows are marked in `taken`."""
    clusters = []
    for j, one in enumerate(stored["clusters"]):
        rows = arrays[f"step{i}_cluster{j}_rows"]
        if not _are_unexplored(rows, taken):
            raise ValueError(f"the rows of cluster {j} in step {i} are not unexplored rows of the data")
        taken[rows] = True
        features = tuple(Feature(str(name), float(diff), float(load)) for name, diff, load in one["features"])
        distinctness = None if one["distinctness"] is None else float(one["distinctness"])
        name = None if one.get("name") is None else str(one["name"])
        clusters.append(
            TakenCluster(rows.astype(np.intp), distinctness, features, chosen=str(one["chosen"]), name=name)
        )
    return tuple(clusters)


def _step(i: int, stored: dict[str, Any], arrays: Arrays, taken: NDArray, shape: tuple[int, int]) -> AcceptedStep:
    """One accepted step of rows that are not `taken`."""
    clusters = _clusters(i, stored, arrays, taken)
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
        structure=_structure(stored.get("structure")),
    )


def _structure(stored: Any) -> Structure | None:
    """Sessions of clusters found view by view have none."""
    if stored is None:
        return None
    valley, dependence = (None if stored[z] is None else float(stored[z]) for z in ("valley", "dependence"))
    return Structure(bool(stored["clear"]), valley, dependence, str(stored["words"]))


def _probability(stored: Any, step: int) -> float | None:
    if stored is not None and not 0 < float(stored) <= 1:
        raise ValueError(f"the p-value of step {step} is {stored!r}")
    return None if stored is None else float(stored)
