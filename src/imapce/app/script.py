"""The Python that leads to the state of a page: the same rows, what is known, the same moves in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from imapce.app.study import Study
from imapce.exploration.record import AcceptedStep, Move, TakenCluster, clusters_after
from imapce.priors.base import rows_in_python

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
        background = "..." if study.background is None else f"imapce.tables.read_table({study.background!r})"
        known = [prior.python(background=background, labels=study.labelled) for prior in study.priors]
        arguments.append(f"prior=[{', '.join(known)}]")
    model = exploration.record().parameters
    changed = {key: model[key] for key in ("alpha", "mu", "missing", "n_components") if model[key] != _DEFAULTS[key]}
    if changed:
        lines[3] = lines[3].replace("Exploration", "IMAPCE, Exploration", 1)
        told = ", ".join(f"{key}={value!r}" for key, value in {"outliers": model["outliers"], **changed}.items())
        arguments.append(f"estimator=IMAPCE({told})")
    if exploration.granularity != "auto":
        arguments.append(f"granularity={exploration.granularity!r}")
    if exploration.n_clusters is not None:
        arguments.append(f"n_clusters={exploration.n_clusters}")
    arguments.append(f"random_state={exploration.random_state}")
    lines.append(f"exploration = Exploration({', '.join(arguments)})")
    if exploration.ignores_structure:
        lines.append('exploration.go_on_with(structure="ignore")')
    lines += _moves(exploration.moves, study.settled_at, exploration.record().numbers)
    return "\n".join(lines) + "\n"


_DEFAULTS: dict[str, Any] = {"alpha": "auto", "mu": "auto", "missing": "error", "n_components": 2}


def _moves(moves: Sequence[Move], settled_at: int, numbers: tuple[int, int] | None) -> list[str]:
    """Lines that lead to the clusters of these moves, of which the first so many were made with other settings.

    Those are written as the clusters they led to: other settings would propose and split otherwise. After them, a step
    is left to the library where everything before it was written step by step, since every step has its own seed, and
    where clusters found at the start get the same `numbers` again.
    """
    before, after = moves[:settled_at], moves[settled_at:]
    taken = clusters_after(before)
    lines = [_by_hand(cluster) for cluster in taken]
    if before:
        lines.append("exploration.go_on_with()")
    steps = [move for move in before if isinstance(move, AcceptedStep)]
    same = len(taken) == len(steps) and not any(move.pieces for move in before if not isinstance(move, AcceptedStep))
    if numbers is not None and after:
        same = same and numbers[0] == 1 + max((cluster.number for cluster in taken), default=-1)
        if same and any(cluster.distinctness is None for cluster in after[0].clusters):
            # Rows by hand have numbers after those of the clusters that were in sight.
            lines.append("exploration.propose()")
    for move in after:
        if isinstance(move, AcceptedStep):
            automatic = move.view == 0 and all(cluster.chosen == "automatic" for cluster in move.clusters)
            name = next((cluster.name for cluster in move.clusters if cluster.name), None)
            if same and automatic:
                lines.append(f"exploration.accept({'' if name is None else f'name={name!r}'})")
            else:
                lines += [_by_hand(cluster) for cluster in move.clusters]
                same = same and len(move.clusters) == 1
        elif move.kind == "merge":
            lines.append(f"exploration.merge({list(move.replaced)})")
        elif move.kind == "consolidate":
            lines.append("exploration.consolidate()")
        elif move.replaced:
            # Whether or not it was more than chance: it was done.
            lines.append(f'exploration.split({move.replaced[0]}, structure="ignore")')
        else:
            # Pieces of a cluster that was not taken show in proposals alone; what is taken of them follows by its rows.
            lines.append(f"# {move.words}")
            same = False
    return lines


def _by_hand(cluster: TakenCluster) -> str:
    name = "" if cluster.name is None else f", name={cluster.name!r}"
    return f"exploration.accept(mask={rows_in_python(cluster.rows)}, number={cluster.number}{name})"
