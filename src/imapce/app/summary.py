"""Where an exploration stands, in the words and numbers of the page."""

from __future__ import annotations

from typing import Any

from imapce.app.scene import Scene
from imapce.app.study import Study
from imapce.clusters.structure import Structure
from imapce.common.words import counted
from imapce.exploration.knowledge import read_back_in_words
from imapce.exploration.record import Move, Regrouping
from imapce.exploration.session import Exploration
from imapce.exploration.steps import Step
from imapce.exploration.verdict import best_split_in_words, stability_in_words, verdict_in_words


def state_of(exploration: Exploration, study: Study, scene: Scene) -> dict[str, Any]:
    """Counts, steps, whether there is anything left, and what is being looked at.

    >>> import numpy as np
    >>> study = Study("noise", Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> state_of(study.exploration, study, Scene(np.zeros((30, 2)), np.eye(2, 4), kind="overview", title="all",
    ...          known=study.exploration.known))["left"]
    30
    """
    known = exploration.known
    step = exploration.proposal
    taken = int((exploration.labels_ >= 0).sum())
    left = int((~known).sum())
    return {
        "rows": study.n_rows,
        "features": len(exploration.feature_names),
        "left": left,
        "taken": taken,
        "known_at_start": study.n_rows - taken - left,
        "clusters": len(exploration.clusters_),
        "steps": [_step(exploration, study, number) for number in range(len(exploration.steps))],
        "moves": [_move(move) for move in exploration.moves],
        "undoable": len(exploration.moves),
        "redoable": exploration.redoable,
        "stop": _stop(exploration, left),
        "structure": None if exploration.structure is None else _structure(exploration, exploration.structure),
        "granularity": exploration.granularity,
        "n_clusters": exploration.n_clusters,
        "joint": exploration.is_joint,
        "proposed": step is not None,
        "p_value": None if step is None else step.p_value,
        "views": 0 if step is None else len(step.views),
        "looked_at": step is not None and _current(step, scene).looked_at,
        "can_take_most": step is not None and bool(_most(step, scene)),
        "looking": {"kind": scene.kind, "number": scene.number},
        "priors": exploration.known_in_words,
        "known_beside": exploration.known_beside(study.known_columns),
        "read_back": _read_back(exploration, step, scene),
        "known_columns": study.known_columns,
        "weights": study.weights,
        "file": study.file_name,
        "min_cluster_size": exploration.min_cluster_size,
    }


def _current(step: Any, scene: Scene) -> Any:
    return step.views[scene.number if scene.kind == "proposal" and scene.number < len(step.views) else 0]


def _most(step: Any, scene: Scene) -> tuple[int, ...]:
    view = _current(step, scene)
    return view.most_distinct if view.looked_at else ()


def _read_back(exploration: Exploration, step: Step | None, scene: Scene) -> str | None:
    """How well the known is read from the view in sight and from the clusters; None where nobody knows it."""
    found = exploration.steps[scene.number] if scene.kind == "step" else step
    if found is None or found.read_back is None or scene.kind in ("overview", "three"):
        return None
    if scene.kind == "proposal" and scene.number:
        return None
    return read_back_in_words(found.read_back, exploration.known_names)


def _structure(exploration: Exploration, structure: Structure) -> dict[str, Any]:
    """The verdict, why, what the best split would be and whether its groups are shown."""
    shown = exploration.shows(structure)
    best = best_split_in_words(structure) if not exploration.steps or shown else ""
    return {"verdict": structure.verdict, "words": structure.words, "best": best, "shown": shown}


def _stop(exploration: Exploration, left: int) -> str | None:
    """Why it is over; where rows are one group the page says the rest of it beside the gauge."""
    found, reason = exploration.structure, exploration.stop_reason
    if found is not None and reason is not None and reason.startswith(verdict_in_words(found)):
        return f"Nothing is taken by itself: the {counted(left, 'row')} left are one group."
    return reason


def _move(move: Move) -> dict[str, Any]:
    """One of what `undo` takes back: a step, or clusters that were regrouped."""
    if isinstance(move, Regrouping):
        return {"kind": move.kind, "words": move.words}
    return {"kind": "step", "words": ""}


def _step(exploration: Exploration, study: Study, number: int) -> dict[str, Any]:
    step = exploration.steps[number]
    clusters = []
    for cluster in step.clusters:
        clusters.append(
            {
                "number": study.number_of(cluster),
                "name": study.step_name(cluster),
                "size": cluster.size,
                "chosen": cluster.chosen,
                "stability": stability_in_words(cluster.stability),
                "code": study.code_of(cluster),
                "features": [[one.name, round(one.difference, 2)] for one in cluster.features[:3]],
            }
        )
    given = exploration.given_in_words(step)[1]
    return {"clusters": clusters, "view": step.view, "p_value": step.p_value, "given": given}
