"""The Python that leads to the state of a page: the same rows, what is known, the same moves in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.app.study import Study
from imapce.exploration.record import AcceptedStep, Regrouping
from imapce.priors.kinds import Attributes, Prior, Samples, Subset

HEAD = "# The exploration as it stood on the page of imapce app."


def as_python(study: Study) -> str:
    """A script whose `exploration` ends with the same `labels_`.

    Moves that the library would make again by itself are written as such; rows that were chosen by hand are named.

    >>> from imapce import Exploration
    >>> study = Study("noise", Exploration(np.zeros((3, 3)) + np.eye(3), random_state=0), script=("X = ...",))
    >>> as_python(study).splitlines()[-1]
    'exploration = Exploration(X, random_state=0)'
    """
    exploration = study.exploration
    lines = [HEAD, "import numpy as np", "import imapce", "from imapce import Exploration", "", *study.script]
    arguments = ["X"]
    if study.priors:
        names = sorted({type(prior).__name__ for prior in study.priors})
        lines[3] = f"from imapce import {', '.join(sorted(['Exploration', *names]))}"
        known = [_prior(prior, study.background) for prior in study.priors]
        arguments.append(f"prior=[{', '.join(known)}]")
    model = exploration.record().parameters
    changed = {key: model[key] for key in ("alpha", "mu", "missing", "n_components") if model[key] != _DEFAULTS[key]}
    if changed:
        lines[3] = lines[3].replace("Exploration", "IMAPCE, Exploration", 1)
        told = ", ".join(f"{key}={value!r}" for key, value in {"outliers": model["outliers"], **changed}.items())
        arguments.append(f"estimator=IMAPCE({told})")
    arguments.append(f"random_state={exploration.random_state}")
    lines.append(f"exploration = Exploration({', '.join(arguments)})")
    lines += [_move(move, study.settled_at <= place) for place, move in enumerate(exploration.moves)]
    return "\n".join(lines) + "\n"


_DEFAULTS: dict[str, Any] = {"alpha": "auto", "mu": "auto", "missing": "error", "n_components": 2}


def _move(move: AcceptedStep | Regrouping, same_settings: bool) -> str:
    if isinstance(move, Regrouping):
        if move.kind == "merge":
            return f"exploration.merge({list(move.replaced)})"
        if move.kind == "consolidate":
            return "exploration.consolidate()"
        if move.replaced:
            return f"exploration.split({move.replaced[0]})"
        return f"# {move.words}"
    named = [cluster.name for cluster in move.clusters if cluster.name]
    name = f", name={named[0]!r}" if named else ""
    if same_settings and move.view == 0 and all(cluster.chosen == "automatic" for cluster in move.clusters):
        return f"exploration.accept({name.removeprefix(', ')})"
    return "\n".join(f"exploration.accept(mask={_rows(cluster.rows)}{name})" for cluster in move.clusters)


def _rows(rows: Any) -> str:
    """Positions as ranges where they run on, which shortens sorted data to a line."""
    places = np.sort(np.asarray(rows))
    starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    ends = np.append(starts[1:], len(places))
    runs = [(int(places[a]), int(places[b - 1]) + 1) for a, b in zip(starts, ends, strict=True)]
    if len(runs) * 2 > len(places):
        return f"np.array({places.tolist()})"
    parts = ", ".join(str(a) if b == a + 1 else f"{a}:{b}" for a, b in runs)
    return f"np.r_[{parts}]"


def _prior(prior: Prior, background: str | None) -> str:
    if isinstance(prior, Attributes):
        return f"Attributes({prior.columns!r}{', erase=True' if prior.erase else ''})"
    if isinstance(prior, Subset):
        rows = np.asarray(prior.rows)
        return f"Subset({_rows(np.flatnonzero(rows) if rows.dtype == bool else rows)})"
    if isinstance(prior, Samples):
        return "Samples(...)" if background is None else f"Samples(imapce.tables.read_table({background!r}))"
    names = prior.y.column_names if hasattr(prior.y, "column_names") else []
    erase = ", erase=True" if prior.erase else ""
    return f"Labels(data.select({names!r}){erase})" if names else f"Labels(...{erase})"
