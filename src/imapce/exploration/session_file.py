"""Sessions on disk: what was accepted and from which data, in the archive format of `storage`.

A session holds a fingerprint of its data instead of the data: number of rows, column names, the mean and variance of
every column and a hash over all values in order. On loading, what differs is named.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common import archive as storage
from imapce.errors import FileFormatError, InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import parameters_of_file, plain_parameters
from imapce.exploration.record import AcceptedStep, Feature, TakenCluster
from imapce.priors.kinds import Attributes, Samples, Subset
from imapce.rows.base import Rows

Array = NDArray[np.float64]

SESSION_VERSION = 1


def fingerprint(rows: Rows) -> str:
    """A hash over all values, in order, in the engine's coordinates."""
    digest = hashlib.blake2b(digest_size=16)
    for block in rows.blocks():
        # Adding zero turns -0.0 into 0.0, which are equal numbers with different bytes.
        digest.update(np.ascontiguousarray(block + 0.0).tobytes())
    return digest.hexdigest()


def write_session(path: str | os.PathLike[str], session: Any) -> None:
    """Save `session` to `path`; the bytes depend on its state alone."""
    moments = session._rows.moments()
    arrays: dict[str, NDArray] = {
        "data_mean": moments.mean + session._rows.origin,
        "data_variance": moments.variance,
        "known_at_start": session._known_at_start,
    }
    steps = []
    for i, step in enumerate(session._accepted):
        arrays[f"step{i}_components"] = step.components
        arrays[f"step{i}_mean"], arrays[f"step{i}_scale"] = step.mean, step.scale
        clusters = []
        for j, cluster in enumerate(step.clusters):
            arrays[f"step{i}_cluster{j}_rows"] = cluster.rows
            clusters.append(
                {
                    "distinctness": cluster.distinctness,
                    "chosen": cluster.chosen,
                    "features": [[f.name, f.difference, f.loading] for f in cluster.features],
                }
            )
        entry = {"objective": step.objective, "kurtosis": step.kurtosis, "view": step.view, "clusters": clusters}
        steps.append(entry if step.p_value is None else {**entry, "p_value": step.p_value})
    priors: list[dict[str, Any]] = []
    for i, prior in enumerate(session._other_priors):
        if isinstance(prior, Attributes):
            listed = [prior.columns] if isinstance(prior.columns, (str, int, np.integer)) else list(prior.columns)
            columns = [
                c if isinstance(c, str) else bool(c) if isinstance(c, (bool, np.bool_)) else int(c) for c in listed
            ]
            # A kind of its own: a reader that cannot erase must refuse the session, not go on with a softer prior.
            kind = "erased attributes" if prior.erase else "attributes"
            priors.append({"kind": kind, "columns": columns, "weight": float(prior.weight)})
        elif isinstance(prior, Samples):
            matrix = session._model._read_background(prior.background, moments.mean + session._rows.origin)
            arrays[f"background{i}"] = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
            priors.append({"kind": "samples", "weight": float(prior.weight)})
    header = {
        "parameters": plain_parameters(session._model),
        "min_cluster_size": session.min_cluster_size,
        "max_clusters": session.max_clusters,
        "random_state": session.random_state,
        "clusterer": session.clusterer,
        "refine": session.refine,
        "subset_weight": session._subset_weight,
        "priors": priors,
        "columns": session._model._encoded_names(session._rows.n_features),
        "n_rows": session._rows.n_rows,
        "fingerprint": session._fingerprint,
        "steps": steps,
    }
    storage.write_archive(path, "session", SESSION_VERSION, header, arrays)


def read_session(cls: type[Any], path: str | os.PathLike[str], X: Any, *, autosave: bool, row_ids: Any = None) -> Any:
    """The session in `path` on the data `X`, which must be the data it was made from."""
    header, arrays = storage.read_archive(path, "session", SESSION_VERSION)
    try:
        return _restored(cls, path, header, arrays, X, autosave, row_ids)
    except InvalidValueError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{str(path)!r} does not hold a whole imapce session ({reason}).") from error


def _restored(
    cls: type[Any],
    path: str | os.PathLike[str],
    header: dict[str, Any],
    arrays: dict[str, NDArray],
    X: Any,
    autosave: bool,
    row_ids: Any,
) -> Any:
    priors: list[Any] = []
    for i, stored in enumerate(header["priors"]):
        if stored["kind"] in ("attributes", "erased attributes"):
            erase = stored["kind"] == "erased attributes"
            priors.append(Attributes(stored["columns"], weight=stored["weight"], erase=erase))
        else:
            background = arrays[f"background{i}"]
            if background.ndim != 2 or background.shape[1] != len(header["columns"]):
                raise ValueError("a background does not fit the columns")
            priors.append(Samples(background, weight=stored["weight"]))
    session = cls(
        X,
        estimator=IMAPCE(**parameters_of_file(header["parameters"])),
        min_cluster_size=header["min_cluster_size"],
        max_clusters=header["max_clusters"],
        random_state=header["random_state"],
        clusterer=header["clusterer"],
        # Sessions written before clusters were refined go on as they began.
        refine=header.get("refine", False),
        row_ids=row_ids,
    )
    _require_same_data(session, header, arrays)
    session.path = path if autosave else None
    session._other_priors = priors
    # A prior refuses a weight that is no positive number, so an unusable one is found here and not at the next step.
    session._subset_weight = float(Subset([], weight=header["subset_weight"]).weight)
    n = session._rows.n_rows
    start = arrays["known_at_start"]
    if start.shape != (n,) or start.dtype != bool:
        raise ValueError("the rows known at the start do not fit the data")
    session._known_at_start = start
    taken = start.copy()
    d, k = session._rows.n_features, session._model.n_components
    for i, stored in enumerate(header["steps"]):
        clusters = []
        for j, one in enumerate(stored["clusters"]):
            rows = arrays[f"step{i}_cluster{j}_rows"]
            inside = rows.ndim == 1 and rows.dtype.kind == "i" and len(rows) and 0 <= rows.min() <= rows.max() < n
            if not inside or taken[rows].any() or len(np.unique(rows)) != len(rows):
                raise ValueError(f"the rows of cluster {j} in step {i} are not unexplored rows of the data")
            taken[rows] = True
            features = tuple(Feature(str(name), float(diff), float(load)) for name, diff, load in one["features"])
            distinctness = None if one["distinctness"] is None else float(one["distinctness"])
            clusters.append(TakenCluster(rows.astype(np.intp), distinctness, features, str(one["chosen"])))
        components, mean, scale = (arrays[f"step{i}_{part}"] for part in ("components", "mean", "scale"))
        if components.shape != (k, d) or mean.shape != (d,) or scale.shape != (d,) or not clusters:
            raise ValueError(f"step {i} does not fit the data")
        session._accepted.append(
            AcceptedStep(
                tuple(clusters),
                components,
                mean,
                scale,
                float(stored["objective"]),
                float(stored["kurtosis"]),
                int(stored["view"]),
                _probability(stored.get("p_value"), i),
            )
        )
    return session


def _probability(stored: Any, step: int) -> float | None:
    if stored is not None and not 0 < float(stored) <= 1:
        raise ValueError(f"the p-value of step {step} is {stored!r}")
    return None if stored is None else float(stored)


def _require_same_data(session: Any, header: dict[str, Any], arrays: dict[str, NDArray]) -> None:
    names = session._model._encoded_names(session._rows.n_features)
    if session._rows.n_rows != header["n_rows"]:
        raise InvalidValueError(
            f"X must be the data of the session; it has {session._rows.n_rows} rows and the session {header['n_rows']}."
        )
    if names != header["columns"]:
        if len(names) != len(header["columns"]):
            raise InvalidValueError(
                f"X must be the data of the session; it has {len(names)} columns and the session "
                f"{len(header['columns'])}."
            )
        differing = next((a, b) for a, b in zip(names, header["columns"], strict=True) if a != b)
        raise InvalidValueError(
            f"X must be the data of the session; it has column {differing[0]!r} where the session has {differing[1]!r}."
        )
    if session._fingerprint == header["fingerprint"]:
        return
    moments = session._rows.moments()
    close = np.isclose(moments.mean + session._rows.origin, arrays["data_mean"], rtol=1e-9, atol=1e-300)
    close &= np.isclose(moments.variance, arrays["data_variance"], rtol=1e-7, atol=1e-300)
    if close.all():
        raise InvalidValueError(
            "X must be the data of the session, in the same order; its columns have the same means and spreads, so the "
            "rows are in another order or a few values differ."
        )
    different = [names[i] for i in np.flatnonzero(~close)]
    more = f" and {len(different) - 3} more" if len(different) > 3 else ""
    raise InvalidValueError(
        f"X must be the data of the session; the values of {', '.join(map(repr, different[:3]))}{more} differ."
    )
