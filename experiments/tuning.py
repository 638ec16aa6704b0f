"""Hyper-parameters of ct-SNE and Fair-NeRV as in the paper's supplement: one setting, the best over all tasks together.

ct-SNE: perplexity 50, 100, 200 and β′ = 1e-2 … 1e-7. Fair-NeRV: 20 uniform draws from its ranges. The sum of NLS
(synthetic, Adult) and linear accuracy (images) decides, so the labels of the evaluation take part, there as here.
"""

from __future__ import annotations

import numpy as np

from experiments.methods import CT_SNE, FAIR, Method, view
from experiments.problems import TABLE_1, Problem
from experiments.results import Row
from experiments.running import Run
from imapce import metrics

# The choice looks at 18 + 20 settings; on this many images of each kind instead of 6,000 it takes minutes, not hours.
TUNING_ROWS = 1000
TUNING_DRAWS = 3


def tuning(run: Run) -> list[Row]:
    """Each setting's scores, best first; `methods.CTSNE` and `methods.FAIR_NERV` hold the first of each."""
    return [*tuned(run, CT_SNE, ctsne_grid()), *tuned(run, FAIR, fair_nerv_draws())]


def ctsne_grid() -> list[dict[str, float]]:
    return [{"perplexity": p, "beta": 10.0**-power} for p in (50, 100, 200) for power in range(2, 8)]


def fair_nerv_draws(n_draws: int = 20) -> list[dict[str, float]]:
    """τ_in, β, γ ~ U[0, 1], τ_out ~ U(τ_in, 1], ω ~ U[0.5, 0.99]."""
    rng = np.random.default_rng(0)
    settings = []
    for _ in range(n_draws):
        tau_in, beta, gamma = rng.uniform(size=3)
        tau_out, omega = rng.uniform(tau_in, 1.0), rng.uniform(0.5, 0.99)
        drawn = {"tau_in": tau_in, "tau_out": tau_out, "beta": beta, "gamma": gamma, "omega": omega}
        settings.append({name: round(float(value), 3) for name, value in drawn.items()})
    return settings


def tuned(run: Run, method: Method, settings: list[dict[str, float]]) -> list[Row]:
    if run.quick:
        settings = settings[:2]
    names = TABLE_1[:2] if run.quick else TABLE_1
    rows = []
    for setting in settings:
        title = f"{method.name}, " + ", ".join(f"{name} {value:g}" for name, value in setting.items())
        scores = {name: score(run, method.at(title, **setting), name) for name in names}
        run.note(f"{title}: " + ", ".join(f"{name} {value:.3f}" for name, value in scores.items()))
        total = float(sum(scores.values()))
        rows.append(
            Row(method.name, title, "sum over the tasks", None, [total], f"seed 0, {TUNING_DRAWS} draws", scores)
        )
    return sorted(rows, key=lambda row: -row.mean)


def score(run: Run, method: Method, name: str) -> float:
    """The paper's score of one task; of images the mean over draws, since one map's linear accuracy varies by 0.15."""
    found = []
    for draw in range(TUNING_DRAWS if run.problem(name).is_images and not run.quick else 1):
        on = run.problem(name, draw)
        on = on.sample(min(TUNING_ROWS, len(on.X))) if on.is_images else on
        found.append(main_score(on, view(run.cells, method, on, 0)["embedding"]))
    return float(np.mean(found))


def main_score(on: Problem, embedding: np.ndarray) -> float:
    if on.is_images:
        return metrics.classifier_scores(embedding, on.structure["clothes"])["accuracy"]
    return metrics.normalized_laplacian_score(embedding, on.known)
