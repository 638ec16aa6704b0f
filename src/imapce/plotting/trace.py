"""How the search went: the gap of every start to the best objective found, over the evaluations spent.

>>> from imapce import IMAPCE
>>> X = np.random.default_rng(0).normal(size=(60, 4))
>>> plot_trace(IMAPCE(mu=1.0, n_starts=2, random_state=0).fit(X))
<Figure size 760x480 with 1 Axes>
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.style import BESIDE, LABEL_SIZE, PALETTE, draw_legend, mark, panel_on, quiet_axes, root_figure

# The winner keeps the first colour for itself; outcomes differ in dash and end mark too, not in hue alone.
_OUTCOME_LOOKS = (
    ("#009E73", "-", "o"),
    ("#D55E00", (0, (4, 2)), "X"),
    ("#CC79A7", (0, (1, 1.5)), "^"),
    ("#E69F00", (0, (6, 2, 1, 2)), "s"),
    ("#56B4E9", "-", "D"),
)
_USUAL_OUTCOMES = ("converged", "gave up", "joined", "stopped")


def plot_trace(model: Any, *, ax: Axes | None = None) -> Figure:
    """Draw the search of a fitted model and return the figure; the start that won is drawn thick.

    The gap is the distance of an objective to the best one any start reached, on a logarithmic scale. A gap
    of exactly zero is drawn at the bottom of the picture.

    >>> from imapce import IMAPCE
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> plot_trace(IMAPCE(mu=1.0, n_starts=3, random_state=0).fit(X)).axes[0].get_yscale()
    'log'
    """
    evaluations, objectives, outcomes = _read_trace(model)
    panel = panel_on(ax, 7.6, 4.8)
    last_round = _last_finite(objectives)
    finals = objectives[last_round, np.arange(len(outcomes))]
    best = _best_objective(objectives, finals, float(getattr(model, "objective_", np.nan)))
    winner = int(np.nanargmin(np.abs(finals - best)))
    gaps, floor = _log_gaps(objectives, best)
    looks = _outcome_looks(outcomes)
    for start, outcome in enumerate(outcomes):
        hue, dash, shape = looks[outcome]
        won = start == winner
        length = int(last_round[start]) + 1
        panel.plot(
            evaluations[:length],
            gaps[:length, start],
            color=PALETTE[0] if won else hue,
            linestyle="-" if won else dash,
            linewidth=2.8 if won else 1.3,
            alpha=1.0 if won else 0.8,
            zorder=4.0 if won else 3.0,
            marker="*" if won else shape,
            markersize=12 if won else 6,
            markeredgewidth=0,
            markevery=[length - 1],
            clip_on=False,
        )
    panel.set_yscale("log")
    panel.set_ylim(bottom=floor)
    quiet_axes(
        panel,
        "evaluations of the objective",
        "gap to the best objective (log scale)",
        title=f"search from {len(outcomes)} start{'s' if len(outcomes) != 1 else ''}",
    )
    _draw_outcomes(panel, outcomes, winner, looks, best)
    return root_figure(panel)


def _read_trace(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    trace = getattr(model, "trace_", None)
    if trace is None:
        raise InvalidTypeError(
            f"model must be a fitted model with trace_, got {type(model).__name__} without; call fit first."
        )
    evaluations = np.asarray(trace.evaluations, dtype=np.float64)
    objectives = np.asarray(trace.objectives, dtype=np.float64)
    outcomes = [str(outcome) for outcome in trace.outcomes]
    if objectives.shape != (len(evaluations), len(outcomes)):
        raise InvalidValueError(
            f"model.trace_.objectives must have one row per round and one column per start, "
            f"({len(evaluations)}, {len(outcomes)}), got {objectives.shape}; fit the model again."
        )
    # A start that was at its optimum from the beginning never ran a round and has no line.
    ran: NDArray[np.bool_] = np.asarray(np.isfinite(objectives).any(axis=0))
    if not ran.any():
        raise InvalidValueError(
            "model.trace_.objectives must hold a finite objective of some start; here every start began at its "
            "optimum, and there is nothing to draw."
        )
    return evaluations, objectives[:, ran], [outcome for outcome, has in zip(outcomes, ran, strict=True) if has]


def _last_finite(objectives: NDArray[np.float64]) -> NDArray[np.intp]:
    """Give the last round in which each start was still running."""
    return len(objectives) - 1 - np.argmax(np.isfinite(objectives)[::-1], axis=0)


def _best_objective(objectives: NDArray[np.float64], finals: NDArray[np.float64], reported: float) -> float:
    """Give the end of the range at which the search aimed: the one nearer to the reported objective.

    The starts move towards the goal, so without a reported objective the goal is where they moved.
    """
    lowest, highest = float(np.nanmin(objectives)), float(np.nanmax(objectives))
    if np.isfinite(reported):
        downwards = abs(reported - lowest) <= abs(reported - highest)
    else:
        first = objectives[np.argmax(np.isfinite(objectives), axis=0), np.arange(objectives.shape[1])]
        downwards = float(np.sum(finals - first)) <= 0.0
    # A last polish of the winner can go beyond what the trace has seen.
    return float(np.nanmin([lowest, reported]) if downwards else np.nanmax([highest, reported]))


def _log_gaps(objectives: NDArray[np.float64], best: float) -> tuple[NDArray[np.float64], float]:
    """Give gaps that a logarithm can draw, and the bottom of the scale, where gaps of zero are put."""
    gaps = np.abs(objectives - best)
    rounding = 4.0 * np.finfo(float).eps * max(abs(best), np.finfo(float).tiny)
    visible = gaps[np.isfinite(gaps) & (gaps > rounding)]
    floor = 10.0 ** np.floor(np.log10(float(visible.min()) / 2.0)) if len(visible) else 1e-16
    return np.where(np.isnan(gaps), np.nan, np.maximum(gaps, floor)), float(floor)


def _outcome_looks(outcomes: list[str]) -> dict[str, tuple[str, Any, str]]:
    """Give every outcome its look; the usual ones keep theirs from figure to figure."""
    order = [*_USUAL_OUTCOMES, *sorted(set(outcomes) - set(_USUAL_OUTCOMES))]
    return {outcome: _OUTCOME_LOOKS[min(i, len(_OUTCOME_LOOKS) - 1)] for i, outcome in enumerate(order)}


def _draw_outcomes(
    ax: Axes, outcomes: list[str], winner: int, looks: dict[str, tuple[str, Any, str]], best: float
) -> None:
    others = Counter(outcome for start, outcome in enumerate(outcomes) if start != winner)
    entries = [(f"best start ({outcomes[winner]})", mark("*", PALETTE[0], 12, linestyle="-", linewidth=2.8))]
    for outcome in (word for word in looks if word in others):
        hue, dash, shape = looks[outcome]
        entries.append((f"{outcome} ({others[outcome]})", mark(shape, hue, 6, linestyle=dash, linewidth=1.3)))
    weight = {"size": LABEL_SIZE, "weight": "bold"}
    title = {"title": f"best objective {best:.6g}", "title_fontproperties": weight, "alignment": "left"}
    draw_legend(ax, entries, **BESIDE, handlelength=3.0, **title)
