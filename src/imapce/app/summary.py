"""Where an exploration stands, why rows stand apart and what is left of the known, in the words of the page."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from imapce.app.colours import short_value
from imapce.app.scene import Scene
from imapce.app.study import Study
from imapce.clusters.significance import Verdict
from imapce.common.words import counted
from imapce.exploration.counted import trait_of
from imapce.exploration.description import Profile
from imapce.exploration.knowledge import read_back_in_words
from imapce.exploration.record import Regrouping
from imapce.exploration.session import Exploration
from imapce.exploration.session_file import told_feature
from imapce.exploration.steps import Step
from imapce.exploration.traits import MOST_IN_NAME, WORTH_NAMING, NumberTrait, Trait, aligned, overlap_in_words
from imapce.exploration.verdict import BEGINNINGS, best_split_in_words, stability_in_words, verdict_in_words
from imapce.metrics import residual_predictability
from imapce.plotting.reports.page import Histogram

MOST_LEVELS = 6
MOST_LABELS = 3
# Reading back is a cross-validation: so many rows tell it to about 0.02.
READ_ROWS = 3000
MOST_KNOWN = 6
# The p-values up to which rows left are clearly, and possibly, more than one cloud; 0.01 is the least there is.
CLEAR, POSSIBLE = 0.01, 0.05


def describe_state(study: Study, scene: Scene) -> dict[str, Any]:
    """Counts, steps, whether there is anything left, and what is being looked at.

    >>> study = Study("noise", Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> describe_state(study, Scene(np.zeros((30, 2)), np.eye(2, 4), kind="plain", title="all",
    ...          known=study.exploration.known))["left"]
    30
    """
    exploration, known = study.exploration, study.exploration.known
    step = exploration.proposal
    # A view that was in sight may be none of the step that was proposed since.
    in_sight = scene.number if step is not None and scene.kind == "proposal" and scene.number < len(step.views) else 0
    seen = None if step is None else step.views[in_sight]
    taken = int((exploration.labels_ >= 0).sum())
    left = int((~known).sum())
    return {
        "rows": study.n_rows,
        "features": len(exploration.feature_names),
        "left": left,
        "taken": taken,
        "known_at_start": study.n_rows - taken - left,
        "clusters": len(exploration.clusters_),
        "steps": [_step(study, number) for number in range(len(exploration.steps))],
        "moves": [
            {"kind": move.kind, "words": move.words} if isinstance(move, Regrouping) else {"kind": "step", "words": ""}
            for move in exploration.moves
        ],
        "undoable": len(exploration.moves),
        "redoable": exploration.redoable,
        "stop": _stop(exploration, left),
        "structure": _structure(exploration),
        "remains": _remains(exploration, step),
        "granularity": exploration.granularity,
        "n_clusters": exploration.n_clusters,
        "joint": exploration.is_joint,
        "proposed": step is not None,
        "views": 0 if step is None else len(step.views),
        "can_take_most": seen is not None and seen.looked_at and bool(seen.most_distinct),
        "looking": {"kind": scene.kind, "number": scene.number},
        "known": [{"name": name, "came": came} for name, came in study.known_by_column.items()],
        "known_beside": exploration.known_beside(list(study.known_by_column)),
        "read_back": _read_back(exploration, step, scene),
        "weights": {name: short_value(exploration.parameters[name]) for name in ("alpha", "mu")},
        "file": study.file_name,
    }


def _read_back(exploration: Exploration, step: Step | None, scene: Scene) -> str | None:
    """How well the known is read from the view in sight and from the clusters; None where nobody knows it."""
    found = exploration.steps[scene.number] if scene.kind == "step" else step
    if found is None or found.read_back is None or scene.kind in ("plain", "overview", "three"):
        return None
    if scene.kind == "proposal" and scene.number:
        return None
    return read_back_in_words(found.read_back, exploration.known_names)


def _structure(exploration: Exploration) -> dict[str, Any] | None:
    """The verdict, why, what the best split would be and whether its groups are shown."""
    structure = exploration.structure
    if structure is None:
        return None
    shown = exploration.shows(structure)
    best = best_split_in_words(structure) if not exploration.steps or shown else ""
    return {"verdict": structure.verdict, "words": verdict_in_words(structure), "best": best, "shown": shown}


def _remains(exploration: Exploration, step: Step | None) -> dict[str, Any] | None:
    """Whether anything is left, in the verdicts of the library; None before a look, and where `_structure` says it.

    Clusters of all directions were judged when they were found, and so are those of them that are left. Of clusters
    that are found view by view the test of the rows left decides.
    """
    if step is None or not step.views[0].looked_at:
        return None
    if not exploration.is_joint:
        if step.p_value is None:
            return None
        share = f"{100 * step.p_value:.2g}\N{NO-BREAK SPACE}%"
        words = f"one shapeless cloud would look as split in {share} of draws (p = {step.p_value:.2g})"
        verdict: Verdict = "clear" if step.p_value <= CLEAR else "possible" if step.p_value <= POSSIBLE else "none"
        return {"verdict": verdict, "words": f"{BEGINNINGS[verdict]}: {words}"}
    if not exploration.clusters_:
        return None
    if step.structure is None or not exploration.shows(step.structure) or not len(step.numbers):
        return {"verdict": "none", "words": f"{BEGINNINGS['none']}: none of the clusters that were found is left"}
    left = counted(len(step.numbers), "of the clusters that were found is left", "of the clusters found are left")
    return {"verdict": step.structure.verdict, "words": f"{BEGINNINGS[step.structure.verdict]}: {left}"}


def _stop(exploration: Exploration, left: int) -> str | None:
    """Why it is over; where rows are one group the page says the rest of it below."""
    step = exploration.proposal
    one_group = step is not None and step.structure is not None and not exploration.shows(step.structure)
    if exploration.done and one_group:
        return f"Nothing is taken by itself: the {counted(left, 'row')} left are one group."
    if exploration.found.is_flat and exploration.known_names:
        rows, axes = counted(left, "row"), exploration.parameters["n_components"]
        return f"Beside what is known the {rows} left do not vary in {axes} directions: forget a column to see more."
    return exploration.stop_reason


def _step(study: Study, number: int) -> dict[str, Any]:
    step = study.exploration.steps[number]
    clusters = [
        {
            "number": study.number_now(cluster),
            "name": study.own_name(cluster) or f"Cluster {cluster.number}",
            "size": cluster.size,
            "stability": stability_in_words(cluster.stability),
            "code": study.code_of(cluster),
            "words": cluster.words,
            "overlap": overlap_in_words(cluster.overlap),
            "features": [told_feature(feature) for feature in cluster.features[:MOST_IN_NAME]],
        }
        for cluster in step.clusters
    ]
    given = study.exploration.given_in_words(step)[1]
    return {"clusters": clusters, "view": step.view, "p_value": step.p_value, "given": given}


def describe_rows(study: Study, rows: NDArray[np.bool_]) -> dict[str, Any]:
    """What sets rows apart from all others, in the units of the table, and which labels they have."""
    profile = study.exploration.describe(rows)
    labels = [study.columns.column(name) for name in study.labels[:MOST_LABELS]]
    return {
        "count": profile.size,
        "share": profile.size / study.n_rows,
        "words": profile.name,
        "known": list(profile.known),
        **_of_cluster(study, rows),
        "choice": _choice(profile),
        "traits": [_trait(trait) for trait in profile.traits],
        "labels": [_trait(trait_of(column, rows, ~rows, strength=0.0)) for column in labels],
    }


def _choice(profile: Profile) -> str:
    """That not all columns are told, and which are; empty where all are."""
    told = len(profile.traits)
    return f"{told} of {profile.n_columns:,} columns, those that differ most" if told < profile.n_columns else ""


def _of_cluster(study: Study, rows: NDArray[np.bool_]) -> dict[str, str]:
    """How often a taken cluster was found again and what its neighbour shares, where the rows are one; else empty."""
    cluster = study.exploration.found.record.moves.cluster_of(rows)
    if cluster is None:
        return {"stability": "", "overlap": ""}
    return {"stability": stability_in_words(cluster.stability), "overlap": overlap_in_words(cluster.overlap)}


def _trait(trait: Trait) -> dict[str, Any]:
    content: dict[str, Any] = {"column": trait.column, "strength": trait.strength}
    if isinstance(trait, NumberTrait):
        drawn = Histogram.of(trait)
        return content | {
            "kind": "number",
            "inside": short_value(trait.inside.mean),
            "outside": short_value(trait.outside.mean),
            "told": aligned(trait.inside.mean, trait.outside.mean),
            "missing": _missing(trait),
            "histogram": {name: getattr(drawn, name) for name in ("box", "bars", "line", "low", "high")},
        }
    levels = [
        {
            "name": trait.levels[place],
            "inside": round(trait.inside[place], 4),
            "outside": round(trait.outside[place], 4),
        }
        for place in trait.largest(MOST_LEVELS)
    ]
    return content | {"kind": "levels", "levels": [*levels, *_missing(trait)]}


def _missing(trait: Trait) -> list[dict[str, Any]]:
    """How often a column is missing, as a level; none where that says nothing."""
    gone = trait.missing
    if gone is None or (abs(gone.gap) < WORTH_NAMING and not trait.says_missing):
        return []
    return [{"name": "missing", "inside": round(gone.inside, 4), "outside": round(gone.outside, 4)}]


def read_known_back(study: Study, scene: Scene) -> dict[str, Any]:
    """How well every known column can be read back from the view, against chance and against the table itself."""
    names = [name for name in study.known_by_column if name in study.columns.names]
    rows = np.sort(np.random.default_rng(0).permutation(study.n_rows)[:READ_ROWS])
    found = []
    for name in names[:MOST_KNOWN]:
        column = study.columns.column(name)
        given = column.values if column.values is not None else column.codes
        assert given is not None
        chosen = rows[~np.isnan(given[rows].astype(np.float64)) & ((given[rows] >= 0) | column.is_number)]
        kind: Literal["numeric", "categorical"] = "numeric" if column.is_number else "categorical"
        try:
            read = residual_predictability(scene.coordinates[chosen], given[chosen], n_splits=5, attribute_kind=kind)
        except ValueError as problem:
            found.append({"name": name, "words": str(problem)})
            continue
        found.append({"name": name, "score": read["score"], "chance": read["chance"]})
    return {"known": found}
