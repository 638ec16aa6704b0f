"""Why this view, drawn and in words: every optimum of the path at its α and μ, and what they were compared by.

>>> from imapce import IMAPCE
>>> from imapce.datasets import make_synthetic
>>> plot_path(IMAPCE(n_starts=2).fit(make_synthetic(60).X)).axes[0].get_ylabel()
'rows whose cluster is seen'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from imapce.choice.path import distinct
from imapce.common.words import counted
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.cloud import Group, draw_groups
from imapce.plotting.style import (
    BESIDE,
    HAIRLINE,
    INK,
    LABEL_SIZE,
    PALETTE,
    SOFT_INK,
    TICK_SIZE,
    blank_figure,
    draw_legend,
    mark,
    quiet_axes,
    write_title,
)
from imapce.priors.effect import explained_away
from imapce.search.descent import squared_distances
from imapce.search.race import Optimum

MOST_THUMBNAILS = 4
# The optima of a fit are often one view found at several settings. A thumbnail is for one of which the others leave a
# quarter of an axis unexplained. Each comparison holds all rows in one more view: few of a large table.
LOOKS_DIFFERENT = 0.25
COMPARED_ROWS, FEWEST_COMPARED = 1_000_000, 8
# A thumbnail is an inch and a half wide: more rows than these cannot be told apart in it.
THUMBNAIL_ROWS = 5_000
CHOSEN_HUE, NUMBERED_HUE = PALETTE[0], PALETTE[1]
DASHED = (0, (4, 3))
_GAP = 0.7
_WIDTH_INCHES = 8.6
_SCORE_INCHES, _LEAKAGE_INCHES, _THUMBNAIL_INCHES, _NAMES_INCHES = 2.9, 1.3, 1.9, 1.2
_CROWDED_TICKS = 8

Places = dict[tuple[float, float], float]
NAMES = {
    "seen": "rows whose cluster is seen",
    "kept": "neighbourhoods kept",
    "score": "score",
    "leakage": "leakage",
}
# Leakage is drawn up to here at least, or a little would look like much.
LEAST_TOP = 0.1
# A view that shows less of the known than this shows nothing of it: the rest is rounding.
SHOWS_SOMETHING = 1e-6


def plot_path(model: Any, X: Any = None, *, labels: Any = None, views: NDArray[np.float64] | None = None) -> Figure:
    """Draw every optimum that an automatic fit tried at its α and μ and return the figure.

    Each setting has a place, ordered by α and then by μ; a line joins the best of every μ at one α. The height is what
    they were compared by: the share of rows whose nearest in the view tell their cluster; where one cluster is all
    there is, the share of the neighbourhoods kept, 0 being chance; beside a background, or where α weighs
    what is known, the score separation·(1 − leakage)₊, 0 being one Gaussian cloud. The star was chosen. The dashed line
    is PCA's plane (μ = 0), chance or that cloud. Below it, where a view shows something of what α weighs, the leakage
    Σρ².

    With `X`, the rows that the model was fitted to or others with their columns (and their `labels`, where labels were
    known and not erased), the chosen view and the next of `optima_` that look different from it are drawn small, with
    the numbers by which `transform(X, view=3)` draws them. `views` (m, n, k), as `transform_all` gives them, take the
    place of both where they are at hand.

    >>> from imapce import IMAPCE
    >>> from imapce.datasets import make_synthetic
    >>> X = make_synthetic(60).X[:, :6]
    >>> plot_path(IMAPCE(n_starts=2, random_state=0).fit(X), X)
    <Figure size 860x... with ... Axes>
    """
    by = compared_by(model)
    path = compared(model, by)
    ranked = [optimum for optimum in model.optima_ if np.isfinite(getattr(optimum, by))]
    if len(ranked) < len(model.optima_):
        # A file written before optima told what they were compared by.
        ranked = distinct(sorted(path, key=lambda optimum: -getattr(optimum, by)))
    if X is not None and views is None:
        views = model.transform_all(X, labels, most=most_compared(X))
    different = [] if views is None else _different_views(views, ranked)
    shown = {number: optimum for number, optimum, _ in different} or {0: ranked[0]}
    has_leaks = leaks(path)
    heights = [_SCORE_INCHES, *([_LEAKAGE_INCHES] if has_leaks else []), *([_THUMBNAIL_INCHES] if different else [])]
    figure = blank_figure(_WIDTH_INCHES, sum(heights) + _NAMES_INCHES)
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    places = _places(path)
    upper: Any = figure.add_subplot(grid[0])
    panels = [upper, *([figure.add_subplot(grid[1], sharex=upper)] if has_leaks else [])]
    for ax, name in zip(panels, (by, "leakage"), strict=False):
        _draw_values(ax, path, places, shown, name=name, by=by)
        quiet_axes(ax, "", NAMES[name])
        ax.grid(False, axis="x")
    title = f"{count_of(len(path), 'view')} at {settings_tried(path)}"
    # Between title and panel stands the name of every α, where there are any.
    room = 10 if weighs_nothing(path) else 26
    write_title(upper, title, pad=room)
    _name_places(panels, places)
    _legend(upper, path, shown, by)
    if different:
        below = grid[-1].subgridspec(1, MOST_THUMBNAILS)
        for place, (number, optimum, view) in enumerate(different):
            _thumbnail(figure.add_subplot(below[place]), view, number, optimum, by=by)
    return figure


def most_compared(X: Any) -> int:
    """How many views of these rows are looked at for thumbnails."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    return max(FEWEST_COMPARED, COMPARED_ROWS // max(1, n_rows))


def _different_views(
    views: NDArray[np.float64], ranked: list[Optimum]
) -> list[tuple[int, Optimum, NDArray[np.float64]]]:
    """The first views that look different, by number, with (a sample of) the rows as `transform` would show them.

    Two views of the same rows are compared by k − Σρ², ρ their canonical correlations.
    """
    found: list[tuple[int, Optimum, NDArray[np.float64]]] = []
    bases: list[NDArray[np.float64]] = []
    n_rows = views.shape[1]
    chosen: Any = slice(None)
    if n_rows > THUMBNAIL_ROWS:
        chosen = np.random.default_rng(0).choice(n_rows, THUMBNAIL_ROWS, replace=False)
    # `optima_` holds the ranked views in their order, with axes turned as those of the model.
    for number, (optimum, whole) in enumerate(zip(ranked, views, strict=False)):
        view = whole[chosen]
        basis = np.linalg.qr(view - view.mean(axis=0))[0]
        if not bases or squared_distances(basis[None], np.stack(bases)).min() >= LOOKS_DIFFERENT:
            found.append((number, optimum, view))
            bases.append(basis)
        if len(found) == MOST_THUMBNAILS:
            break
    return found


def _places(path: list[Optimum]) -> Places:
    """Where on the page each (α, μ) stands: one step apart, and a gap wider between two α."""
    settings = sorted({(optimum.alpha, optimum.mu) for optimum in path})
    places: Places = {}
    at = 0.0
    for number, setting in enumerate(settings):
        if number:
            at += 1.0 + (_GAP if setting[0] != settings[number - 1][0] else 0.0)
        places[setting] = at
    return places


def _draw_values(
    ax: Any, path: list[Optimum], places: Places, shown: dict[int, Optimum], *, name: str, by: str
) -> None:
    """All views as dots, the best of each setting joined along μ, the chosen one as a star, the next ones numbered."""
    best: dict[tuple[float, float], Optimum] = {}
    for optimum in path:
        setting = (optimum.alpha, optimum.mu)
        if setting not in best or getattr(optimum, by) > getattr(best[setting], by):
            best[setting] = optimum
    ax.scatter(
        [places[optimum.alpha, optimum.mu] for optimum in path],
        [getattr(optimum, name) for optimum in path],
        s=16,
        color=SOFT_INK,
        alpha=0.55,
        linewidths=0,
        zorder=2.0,
    )
    for alpha in sorted({alpha for alpha, _ in places}):
        along = [(places[setting], getattr(best[setting], name)) for setting in places if setting[0] == alpha]
        ax.plot(*zip(*along, strict=True), color=INK, linewidth=1.4, marker="o", markersize=4.5, zorder=3.0)
    for number, optimum in shown.items():
        at, height = places[optimum.alpha, optimum.mu], getattr(optimum, name)
        star = number == 0
        ax.plot(
            [at],
            [height],
            marker="*" if star else "o",
            markersize=15 if star else 7,
            color=CHOSEN_HUE if star else NUMBERED_HUE,
            markeredgecolor="white",
            markeredgewidth=0.8,
            zorder=5.0 if star else 4.0,
        )
    ax.margins(y=0.16)
    if name == by:
        if (level := _level(path, by)) is not None:
            ax.axhline(level, color=SOFT_INK, linewidth=0.8, linestyle=DASHED, zorder=1.2)
        if by == "seen":
            # There is room above 100 % for a star, and no share.
            ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g} %" if share < 1 + 1e-9 else "")
        _number(ax, path, places, shown, by)
    else:
        top = max(LEAST_TOP, *(optimum.leakage for optimum in path))
        ax.set_ylim(-0.1 * top, 1.16 * top)
        ax.locator_params(axis="y", nbins=4)


def _level(path: list[Optimum], by: str) -> float | None:
    """What the heights are seen against; None where there is nothing."""
    return next((optimum.seen for optimum in path if optimum.mu == 0), None) if by == "seen" else 0.0


def _number(ax: Any, path: list[Optimum], places: Places, shown: dict[int, Optimum], by: str) -> None:
    """Write the numbers of the thumbnails above their views, or below where another view is above.

    Those at nearly one place share a line.
    """
    if len(shown) < 2:
        return
    low, high = ax.get_ylim()
    near = 0.08 * (high - low)
    written: list[tuple[tuple[float, float], float, list[str]]] = []
    for number, optimum in shown.items():
        setting = (optimum.alpha, optimum.mu)
        spot = next((spot for spot in written if spot[0] == setting and spot[1] - getattr(optimum, by) <= near), None)
        if spot is None:
            written.append((setting, getattr(optimum, by), [str(number)]))
        else:
            spot[2].append(str(number))
    for setting, height, numbers in written:
        # Nearer than a third of that the marks lie on each other, and the number is clear of both.
        gaps = [getattr(optimum, by) - height for optimum in path if (optimum.alpha, optimum.mu) == setting]
        above = any(near / 3 < gap <= 1.5 * near for gap in gaps)
        ax.annotate(
            ", ".join(numbers),
            (places[setting], height),
            xytext=(0, -6 if above else 6),
            textcoords="offset points",
            ha="center",
            va="top" if above else "bottom",
            fontsize=TICK_SIZE,
            fontweight="bold",
            color=INK,
            zorder=6.0,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )


def _name_places(panels: Sequence[Any], places: Places) -> None:
    """Name μ below every place and α above every group of them."""
    upper, lowest = panels[0], panels[-1]
    crowded = len(places) > _CROWDED_TICKS
    labels = [short_number(mu) for _, mu in places]
    lowest.set_xticks(list(places.values()), labels, rotation=40 if crowded else 0, ha="right" if crowded else "center")
    for tick in lowest.get_xticklabels():
        tick.set_rotation_mode("anchor")
    upper.set_xlim(-0.75, max(places.values()) + 0.75)
    lowest.set_xlabel("μ", fontsize=LABEL_SIZE, color=INK)
    if lowest is not upper:
        upper.tick_params(axis="x", labelbottom=False)
    groups: dict[float, list[float]] = {}
    for (alpha, _), at in places.items():
        groups.setdefault(alpha, []).append(at)
    for alpha, spots in groups.items():
        if list(groups) == [np.inf]:
            break  # nothing was weighed, so there is nothing to name
        upper.annotate(
            f"α = {short_number(alpha)}",
            (float(np.mean(spots)), 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=TICK_SIZE,
            color=INK,
        )
        if spots[0] > 0:
            for ax in panels:
                ax.axvline(spots[0] - (1.0 + _GAP) / 2, color=HAIRLINE, linewidth=0.8, zorder=1.0)


def _legend(ax: Any, path: list[Optimum], shown: dict[int, Optimum], by: str) -> None:
    chosen, *others = map(str, shown)
    entries = [(f"chosen ({chosen})" if others else "chosen", mark("*", CHOSEN_HUE, 13))]
    if others:
        entries.append((f"next different ({', '.join(others)})", mark("o", NUMBERED_HUE)))
    if len(path) > 1:
        best = "best at its μ" if weighs_nothing(path) else "best at its α, μ"
        entries.append((best, mark("o", INK, 4.5, linestyle="-", linewidth=1.4)))
        entries.append(("other optima", mark("o", SOFT_INK, 4.5, alpha=0.55)))
    if _level(path, by) is not None:
        level = {"seen": "PCA's plane (μ = 0)", "kept": "chance", "score": "one Gaussian cloud"}[by]
        entries.append((level, mark("", SOFT_INK, linestyle=DASHED, linewidth=0.8)))
    draw_legend(ax, entries, **BESIDE)


def _thumbnail(ax: Any, view: NDArray[np.float64], number: int, optimum: Optimum, *, by: str) -> None:
    """One view without scales: its first two axes, or how the rows lie along the only one."""
    hue = CHOSEN_HUE if number == 0 else NUMBERED_HUE
    if view.shape[1] == 1:
        ax.hist(view[:, 0], bins=40, color=hue)
    else:
        draw_groups(ax, view[:, :2], [Group(np.ones(len(view), dtype=bool), hue, size=1 / 3)])
        ax.set_aspect("auto")
    ax.margins(0.06)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(hue if number == 0 else HAIRLINE)
    ax.set_title(
        f"view {number}: {by} {value_in_words(by, optimum)}\n{found_at(optimum, ', ')}",
        fontsize=TICK_SIZE,
        color=INK,
        fontweight="bold" if number == 0 else "normal",
    )


def path_caption(model: Any) -> str:
    """Say in a few sentences why the fit chose its view, for the place below `plot_path`.

    >>> from imapce import IMAPCE
    >>> from imapce.datasets import make_synthetic
    >>> print(path_caption(IMAPCE(n_starts=2).fit(make_synthetic(60).X)))
    Of ... views this one was chosen by how well the ... clusters are seen: the nearest rows tell the cluster of ...
    """
    by = compared_by(model)
    path = compared(model, by)
    best = model.optima_[0]
    if not np.isfinite(getattr(best, by)):
        best = max(path, key=lambda optimum: float(getattr(optimum, by)))
    if by == "score":
        where = f"{value_in_words(by, best)} at {found_at(best)}"
        if len(path) == 1:
            return f"Only one view was found, so there was no choice: its score is {where}. {_meaning(path)}"
        at = f"Of {len(path)} views at {settings_tried(path)}"
        return f"{at} the one with the highest score was chosen: {where}. {_meaning(path)}"
    lead = f"Of {len(path)} views this one was chosen by"
    if by == "kept":
        # Older files chose so whatever there was.
        one_cluster = "" if np.isfinite(best.separation) else ", since one cluster is all there is"
        rule = f"how much it keeps of who is near whom{one_cluster}: "
        told, end = f"{value_in_words(by, best)} of the neighbourhoods", "; 0 is chance, 1 a perfect map"
    else:
        count = getattr(model, "n_clusters_", None)
        rule = f"how well the {'' if count is None else f'{count} '}clusters are seen: "
        told, end = f"the nearest rows tell the cluster of {value_in_words(by, best)} of the rows", ""
    if len(path) == 1:
        return f"Only one view was found, so there was no choice: {told}{end}."
    sentence = f"{lead} {rule}{told}{_beside_pca(model, path, best, by)}{end}."
    if by == "seen" and best.seen < max(optimum.seen for optimum in path):
        sentence += (
            " Of views that differ by no more than chance makes it, the one that keeps most of who is near whom is "
            f"shown ({value_in_words('kept', best)} of the neighbourhoods; 0 is chance, 1 a perfect map)."
        )
    return sentence


def _beside_pca(model: Any, path: list[Optimum], best: Optimum, by: str) -> str:
    """What PCA's plane has of the same, the end of the path at μ = 0; nothing where it was not tried."""
    of_rest = " of what is left" if explained_away(model) else ""
    if best.mu == 0:
        return f"; it is PCA's plane{of_rest} (μ = 0)"
    planes = [optimum for optimum in path if optimum.mu == 0]
    verb = "shows" if by == "seen" else "keeps"
    return f"; PCA's plane{of_rest} (μ = 0) {verb} {value_in_words(by, planes[0])}" if planes else ""


def _meaning(path: list[Optimum]) -> str:
    meaning = (
        "The score is how much more of the variance one cut along each axis explains than it would of a Gaussian cloud "
        "or of a known background"
    )
    if leaks(path):
        meaning += ", less the share of the view that the known explains (leakage)"
    if max(optimum.score for optimum in path) <= 0:
        meaning += "; here no view falls apart more than a Gaussian cloud, so take no group for granted"
    return f"{meaning}."


def compared_by(model: Any) -> str:
    """What the views of a fit were compared by: how well clusters are "seen", what is "kept" of neighbourhoods where
    there is one cluster, or the "score" of their separation.
    """
    read_path(model)
    return model.optima_[0].compared_by or "score"


def read_path(model: Any) -> list[Optimum]:
    """Give the views that a fitted IMAPCE tried, none where α and μ were given to it.

    >>> from imapce import IMAPCE
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> read_path(IMAPCE(alpha=1.0, mu=1.0, n_starts=1, random_state=0).fit(X))
    []
    """
    path = getattr(model, "path_", None)
    # A list: contrastive PCA has a path of its own, over α alone and without scores.
    if not isinstance(path, list):
        raise InvalidTypeError(
            f"model must be a fitted IMAPCE, got {type(model).__name__} without the path_ of one; call IMAPCE().fit."
        )
    return path


def compared(model: Any, by: str) -> list[Optimum]:
    """Give the views of the path that can be compared; one without variance in a direction has no score."""
    path = read_path(model)
    if not path:
        raise InvalidValueError(
            "model must be a fit that chose α or μ itself, and this one was given both, so it has no path; fit "
            'IMAPCE with alpha="auto" or mu="auto".'
        )
    finite = [optimum for optimum in path if np.isfinite(getattr(optimum, by))]
    if not finite:
        raise InvalidValueError("model.path_ must hold a view with a finite score, got none; fit the model again.")
    return finite


def leaks(path: list[Optimum]) -> bool:
    """Whether a view of the path shows something of what α weighs."""
    return any(optimum.leakage > SHOWS_SOMETHING for optimum in path)


def short_number(value: float) -> str:
    """A number in three digits and as few letters as they need.

    >>> short_number(52345.0), short_number(-0.75), short_number(float("inf"))
    ('5.23e4', '−0.75', '∞')
    """
    if np.isinf(value):
        return "∞"
    mantissa, _, exponent = f"{abs(value):.3g}".partition("e")
    return f"{'−' if value < 0 else ''}{mantissa}" + (f"e{int(exponent)}" if exponent else "")


def found_at(optimum: Optimum, between: str = " and ") -> str:
    """Where an optimum was found; α = ∞ says that nothing was weighed."""
    alpha = "" if np.isinf(optimum.alpha) else f"α = {short_number(optimum.alpha)}{between}"
    return f"{alpha}μ = {short_number(optimum.mu)}"


def weighs_nothing(path: list[Optimum]) -> bool:
    """Whether all views were found at α = ∞, so that μ alone tells them apart."""
    return all(np.isinf(optimum.alpha) for optimum in path)


def settings_tried(path: list[Optimum]) -> str:
    """How many settings a path has, and of what."""
    many = count_of(len({(optimum.alpha, optimum.mu) for optimum in path}), "setting")
    return f"{many} of {'μ' if weighs_nothing(path) else 'α and μ'}"


def count_of(number: int, thing: str) -> str:
    """How many of what in a sentence."""
    return f"one {thing}" if number == 1 else counted(number, thing)


def value_in_words(by: str, optimum: Optimum) -> str:
    """What an optimum is compared by, as a reader takes it: a share of rows in hundredths, a score as a number.

    >>> [value_in_words("seen", Optimum(np.eye(2, 5), objective=3.0, seen=seen)) for seen in (0.973, 0.9968, 1.0)]
    ['97 %', '99.6 %', '100 %']
    """
    value = float(getattr(optimum, by))
    if by != "seen":
        return f"{value:.2f}".replace("-", "−")
    # All rows are all: less is never rounded up to them.
    almost = value < 1 and round(100 * value) == 100
    return f"{np.floor(1000 * value) / 10:.1f} %" if almost else f"{100 * value:.0f} %"
