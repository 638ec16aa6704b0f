"""Why a view was chosen, in words: what the views of a path were compared by, and where the chosen one stands.

>>> from imapce import IMAPCE
>>> compared_by(IMAPCE(n_starts=2).fit(np.random.default_rng(0).normal(size=(60, 4))))
'kept'
"""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.common.words import counted
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.priors.effect import explained_away
from imapce.search.race import Optimum

# A view that shows less of the known than this shows nothing of it: the rest is rounding.
SHOWS_SOMETHING = 1e-6


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
        best = max(path, key=lambda one: float(getattr(one, by)))
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
    if by == "seen" and best.seen < max(one.seen for one in path):
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
    planes = [one for one in path if one.mu == 0]
    verb = "shows" if by == "seen" else "keeps"
    return f"; PCA's plane{of_rest} (μ = 0) {verb} {value_in_words(by, planes[0])}" if planes else ""


def _meaning(path: list[Optimum]) -> str:
    meaning = (
        "The score is how much more of the variance one cut along each axis explains than it would of a Gaussian cloud "
        "or of a known background"
    )
    if leaks(path):
        meaning += ", less the share of the view that the known explains (leakage)"
    if max(one.score for one in path) <= 0:
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
    told = [one for one in path if np.isfinite(getattr(one, by))]
    if not told:
        raise InvalidValueError("model.path_ must hold a view with a finite score, got none; fit the model again.")
    return told


def leaks(path: list[Optimum]) -> bool:
    """Whether a view of the path shows something of what α weighs."""
    return any(one.leakage > SHOWS_SOMETHING for one in path)


def short_number(value: float) -> str:
    """A number in three digits and as few letters as they need.

    >>> short_number(52345.0), short_number(-0.75), short_number(float("inf"))
    ('5.23e4', '−0.75', '∞')
    """
    if np.isinf(value):
        return "∞"
    mantissa, _, exponent = f"{abs(value):.3g}".partition("e")
    return f"{'−' if value < 0 else ''}{mantissa}" + (f"e{int(exponent)}" if exponent else "")


def found_at(one: Optimum, between: str = " and ") -> str:
    """Where an optimum was found; α = ∞ says that nothing was weighed."""
    alpha = "" if np.isinf(one.alpha) else f"α = {short_number(one.alpha)}{between}"
    return f"{alpha}μ = {short_number(one.mu)}"


def weighs_nothing(path: list[Optimum]) -> bool:
    """Whether all views were found at α = ∞, so that μ alone tells them apart."""
    return all(np.isinf(one.alpha) for one in path)


def settings_tried(path: list[Optimum]) -> str:
    """How many settings a path has, and of what."""
    many = count_of(len({(one.alpha, one.mu) for one in path}), "setting")
    return f"{many} of {'μ' if weighs_nothing(path) else 'α and μ'}"


def count_of(number: int, thing: str) -> str:
    """How many of what in a sentence."""
    return f"one {thing}" if number == 1 else counted(number, thing)


def value_in_words(by: str, one: Optimum) -> str:
    """What an optimum is compared by, as a reader takes it: a share of rows in hundredths, a score as a number.

    >>> [value_in_words("seen", Optimum(np.eye(2, 5), objective=3.0, seen=seen)) for seen in (0.973, 0.9968, 1.0)]
    ['97 %', '99.6 %', '100 %']
    """
    value = float(getattr(one, by))
    if by != "seen":
        return f"{value:.2f}".replace("-", "−")
    # All rows are all: less is never rounded up to them.
    almost = value < 1 and round(100 * value) == 100
    return f"{np.floor(1000 * value) / 10:.1f} %" if almost else f"{100 * value:.0f} %"
