"""Why rows stand apart, and what is left of the known: the library's descriptions in the words of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from imapce.app.columns import told
from imapce.app.scene import Scene
from imapce.app.study import Study
from imapce.exploration.traits import LevelTrait, NumberTrait, Trait, trait_of
from imapce.exploration.verdict import stability_in_words
from imapce.metrics import residual_predictability
from imapce.tables.columns import Column

MOST_LEVELS = 6
MOST_LABELS = 3
# Reading back is a cross-validation: so many rows tell it to about 0.02.
READ_ROWS = 3000
MOST_KNOWN = 6


def described(study: Study, rows: NDArray[np.bool_]) -> dict[str, Any]:
    """What sets rows apart from all others, in the units of the table, and which labels they have."""
    profile = study.exploration.profile(rows)
    labels = [_column(study, name) for name in study.labels[:MOST_LABELS]]
    return {
        "count": profile.size,
        "share": profile.size / study.n_rows,
        "words": profile.name,
        "known": list(profile.known),
        "stability": _stability(study, rows),
        "traits": [_trait(one) for one in profile.traits],
        "labels": [_trait(trait_of(one, rows, ~rows, strength=0.0)) for one in labels],
        "typical": [one.name for one in profile.typical],
    }


def _stability(study: Study, rows: NDArray[np.bool_]) -> str:
    """How often a taken cluster was found again, where the rows are one; else empty."""
    places = np.flatnonzero(rows)
    for cluster in study.exploration.clusters_:
        if cluster.stability is not None and np.array_equal(np.sort(cluster.rows), places):
            return stability_in_words(cluster.stability)
    return ""


def _trait(trait: Trait) -> dict[str, Any]:
    if isinstance(trait, NumberTrait):
        return {
            "kind": "number",
            "column": trait.column,
            "strength": trait.strength,
            "high": trait.is_high,
            "inside": told(trait.inside.mean),
            "outside": told(trait.outside.mean),
            "difference": trait.difference,
            "edges": [told(one) for one in (trait.edges[0], trait.edges[-1])],
            "bins_inside": _rounded(trait.inside.shares),
            "bins_outside": _rounded(trait.outside.shares),
        }
    return {"kind": "levels", "column": trait.column, "strength": trait.strength, "levels": _levels(trait)}


def _levels(trait: LevelTrait) -> list[dict[str, Any]]:
    return [
        {"name": trait.levels[one], "inside": round(trait.inside[one], 4), "outside": round(trait.outside[one], 4)}
        for one in trait.largest(MOST_LEVELS)
    ]


def _rounded(shares: Sequence[float]) -> list[float]:
    return [round(share, 5) for share in shares]


def _column(study: Study, name: str) -> Column:
    """A column of the study as the library describes one."""
    values = study.columns.values(name)
    if study.columns.kind(name) == "number":
        return Column(name, values=values.astype(np.float64))
    texts = np.array(["" if told(one) is None else str(told(one)) for one in values])
    levels, codes = np.unique(texts, return_inverse=True)
    missing = levels == ""
    codes = np.where(missing[codes], -1, codes - int(missing.any()))
    return Column(name, codes=codes.astype(np.intp), levels=tuple(str(one) for one in levels[~missing]))


def left_of_the_known(study: Study, scene: Scene) -> dict[str, Any]:
    """How well every known column can be read back from the view, against chance and against the table itself."""
    names = [name for name in study.known_columns if name in study.columns.names]
    rows = np.sort(np.random.default_rng(0).permutation(study.n_rows)[:READ_ROWS])
    found = []
    for name in names[:MOST_KNOWN]:
        column = _column(study, name)
        given = column.values if column.values is not None else column.codes
        assert given is not None
        chosen = rows[~np.isnan(given[rows].astype(np.float64)) & ((given[rows] >= 0) | column.is_number)]
        kind: Literal["numeric", "categorical"] = "numeric" if column.is_number else "categorical"
        try:
            read = residual_predictability(scene.coordinates[chosen], given[chosen], n_splits=5, attribute_kind=kind)
        except ValueError as problem:
            found.append({"name": name, "words": str(problem)})
            continue
        found.append({"name": name, "score": read["score"], "chance": read["chance"], "measure": read["measure"]})
    return {"known": found, "more": max(0, len(names) - MOST_KNOWN), "view": scene.title}
