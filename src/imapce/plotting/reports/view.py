"""The report of one fitted view: the rows in it, why it was chosen, which features make it, how the search went.

It puts together what `plot_embedding`, `plot_path`, `plot_loadings` and `plot_trace` draw of one model.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imapce.choice.leakage import PriorLeakage, without_leakage
from imapce.common.words import axis_names, close_matches, given, listing
from imapce.errors import InvalidValueError
from imapce.plotting.biplot import plot_loadings
from imapce.plotting.cloud import CROWDED
from imapce.plotting.figure import for_a_file
from imapce.plotting.key import column_name, read_labels
from imapce.plotting.path import most_compared, path_caption, plot_path, read_path
from imapce.plotting.reports.hover import HoverRows
from imapce.plotting.reports.page import Picture, Section, Table, write_report
from imapce.plotting.scatter import first_axes, plot_embedding, words_of_view
from imapce.plotting.trace import plot_trace
from imapce.priors.effect import explained_away, strongest
from imapce.tables.encode import is_table
from imapce.tables.named import NamedMatrix
from imapce.tables.reader import OriginalColumns

SMALL = "Below it is drawn small, and beside it the next best that look different, if there are any."
_FEATURES_IN_TABLE = 12
_COLUMNS_HOVERED = 5


@for_a_file()
def write_view_report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    color: ArrayLike | Mapping[str, ArrayLike] | None = None,
    color_name: str | None = None,
    told: Collection[str] = (),
    known: ArrayLike | None = None,
    labels: Any = None,
    title: str = "View",
    facts: Mapping[str, object] | None = None,
    hover: Sequence[str] | None = None,
) -> Path:
    """Write one self-contained HTML page about a fitted IMAPCE and the rows `X`, and return its path.

    `color`, `color_name` and `known` are those of `plot_embedding`, `labels` those of `IMAPCE.transform`; `told` are
    names of colours that the fit was told, or by their names what came of each, as {"sex": "erased"}; `facts` are shown
    below the title. Where the fit chose α or μ itself, a section says why it chose this view; where columns or labels
    are known, the page says how well they are read back from it. Points can be hovered: they tell their row, their
    colours and the columns named in `hover`, by default those that make most of the view.

    >>> from imapce import IMAPCE
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = IMAPCE(alpha=0.0, mu=1.0, n_starts=1, random_state=0).fit(X)
    >>> write_view_report(model, X, "view.html", color=np.arange(60) % 2).name
    'view.html'
    """
    chosen = bool(read_path(model))
    # All views are read at once, as every reading of a table encodes it.
    views = model.transform_all(X, labels, most=most_compared(X) if chosen else 1)
    view, known_names = views[0], explained_away(model)
    drawn_view, told_beside = first_axes(view), words_of_view(model, title)
    figure = plot_embedding(drawn_view, color=color, color_name=color_name, known=known, **told_beside)
    caption = _view_caption(view, color, known, _came_of(told, known_names))
    if drawn_view.shape[1] < view.shape[1]:
        caption += f" It shows the first two of {view.shape[1]} axes."
    sections = [Section("The view", _left_of_the_known(model), parts=[Picture(caption, figure, drawn_view)])]
    if chosen:
        sections.append(
            Section("Why this view", figures=[(f"{path_caption(model)} {SMALL}", plot_path(model, views=views))])
        )
    arrows = "Which features make the view: long arrows pull points their way."
    if len(model.encoded_feature_names_) > _FEATURES_IN_TABLE:
        every = f"{len(model.encoded_feature_names_):,}"
        arrows += f" The table has the {_FEATURES_IN_TABLE} of {every} features with the largest share of the view."
    if known_names:
        arrows += f" Each stands for what is left of it given {listing(known_names, 5)}."
    sections.append(
        Section("What makes it", figures=[(arrows, plot_loadings(model, embedding=drawn_view))], table=_features(model))
    )
    trace = "Every line is a starting point on its way down to an optimum"
    if chosen:
        at = "μ" if np.isinf(model.alpha_) else "α and μ"
        trace += f", at the {at} of the chosen view; the gap counts the directions searched"
    trace += "."
    drawn = [(trace, plot_trace(model))] if np.isfinite(model.trace_.objectives).any() else []
    sections.append(Section("The search", without_leakage(model.stop_reason_), drawn))
    # Clouds of many points hardly compress: at a lower resolution, still above that of the page, they stay small.
    dpi = 105.0 if len(view) > CROWDED else 150.0
    rows = _hovered(model, X, color=color, color_name=color_name, names=hover, n_rows=len(view))
    return write_report(path, title=title, sections=sections, summary=facts, dpi=dpi, hover=rows)


def _hovered(
    model: Any,
    X: Any,
    *,
    color: ArrayLike | Mapping[str, ArrayLike] | None,
    color_name: str | None,
    names: Sequence[str] | None,
    n_rows: int,
) -> HoverRows:
    """What a point tells: its row, its colour, and columns as they are in X."""
    source = OriginalColumns(model.reader_, X if is_table(X) else None, lambda places: _columns_of(X, places))
    if names is None:
        share = np.sum(model.components_**2, axis=0)
        groups = np.arange(len(share)) if model.reader_.groups is None else model.reader_.groups
        makes = np.bincount(groups, weights=share)
        if (effect := getattr(model, "effect_", None)) is not None:
            # What was explained away makes nothing of the view.
            makes[groups[effect.columns]] = -1.0
        order = np.argsort(-makes, kind="stable")[:_COLUMNS_HOVERED]
        chosen = [int(place) for place in order if makes[place] >= 0]
    else:
        if absent := [name for name in names if name not in source.names]:
            raise InvalidValueError(
                f"hover must name columns of X, got {absent[0]!r}: {close_matches(absent[0], source.names)}"
            )
        chosen = [source.names.index(name) for name in names]
    columns = [source.column(place) for place in chosen]
    if color is not None:
        named = color if isinstance(color, Mapping) else {color_name or column_name(color) or "colour": color}
        columns[:0] = [
            read_labels(labels, "color", n_rows, most=n_rows + 1, name=name) for name, labels in named.items()
        ]
    index = getattr(X, "index", None) if is_table(X) else None
    return HoverRows(np.arange(n_rows) if index is None else np.asarray(index), columns)


def _columns_of(X: Any, places: NDArray[np.intp]) -> NDArray[np.float64]:
    matrix = X.matrix if isinstance(X, NamedMatrix) else X
    chosen = matrix[:, places] if hasattr(matrix, "shape") else np.asarray(matrix)[:, places]
    return np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen, dtype=np.float64)


def _left_of_the_known(model: Any) -> str:
    """What was explained away, and how much of the known is left; nothing where no column or label is known."""
    names, read = explained_away(model), PriorLeakage.from_model(model)
    told = [f"The rows are shown given {listing(names, 10)}, whose effect was explained away."] if names else []
    return " ".join([*told, *([] if read is None else [read.message])])


def _came_of(told: Collection[str], explained: Collection[str]) -> dict[str, str]:
    """What came of every colour that the fit was told."""
    given_words = told if isinstance(told, Mapping) else dict.fromkeys(told, "known")
    return {name: "explained away" if name in explained else word for name, word in given_words.items()}


def _view_caption(
    view: NDArray[np.float64],
    color: ArrayLike | Mapping[str, ArrayLike] | None,
    known: ArrayLike | None,
    came_of: Mapping[str, str],
) -> str:
    caption = f"Every point is one of {len(view):,} rows."
    if known is not None and np.any(known):
        caption += " Known rows are grey."
    if color is None:
        return caption
    names = list(color) if isinstance(color, Mapping) else []
    known_names = [f"{name} was {came_of[name]}" for name in names if name in came_of]
    if not known_names:
        return f"{caption} The labels that colour it were not used."
    unused = "" if len(known_names) == len(names) else "; the other labels that colour it were not used"
    return f"{caption} What is known colours it too: {', '.join(known_names)}{unused}."


def _features(model: Any) -> Table:
    """The features with the largest share of the view, their weight on every axis and their correlation with it; what
    was explained away is none.
    """
    share = np.mean(model.components_**2, axis=0)
    axes = axis_names(len(model.components_))
    first = given("feature", explained_away(model))
    header = [first, *axes, *(f"correlation with {axis}" for axis in axes), "share"]
    rows = [
        [
            model.encoded_feature_names_[place],
            *(float(weight) for weight in model.components_[:, place]),
            *(float(correlation) for correlation in model.axis_correlation_[:, place]),
            f"{100 * share[place]:.1f}\N{NO-BREAK SPACE}%",
        ]
        for place in strongest(model, _FEATURES_IN_TABLE)
    ]
    return header, rows
