"""Everything automatic: the paper, ours at the paper's setting, ours with nothing set and no label seen."""

from __future__ import annotations

from experiments import paper
from experiments.exploration import automatic_exploration
from experiments.methods import IMAPCE_PAPER, Method
from experiments.planted import minorities, outliers
from experiments.problems import ADULT_PRIORS, problem
from experiments.results import Row
from experiments.running import Run

BESIDE = ("NLS / ceiling", "prior, linear", "prior, 15-NN", "chance")


PLAIN = IMAPCE_PAPER.at("IMAPCE, the paper's α and μ")
# A method's own parameters win over the problem's μ.
AUTOMATIC = IMAPCE_PAPER.at("IMAPCE, automatic", alpha="auto", mu="auto")


def insight(run: Run) -> list[Row]:
    """Attribute priors by NLS, read-back and the structure that should appear; sample priors by linear accuracy.

    Then explorations by NMI and Jaccard, planted minorities by F1, and by how far outliers turn a view.
    """
    names = ("synthetic", *ADULT_PRIORS, *paper.LINEAR)
    views = [row for name in names for method in (PLAIN, AUTOMATIC) for row in _rows(run, method, name)]
    return [*views, *minorities(run), *outliers(run), *automatic_exploration(run)]


def _rows(run: Run, method: Method, name: str) -> list[Row]:
    on = problem(name)
    if on.is_images:
        printed = paper.LINEAR[name][paper.METHODS.index("IMAPCE")]
        return run.rows(method, name, {"linear accuracy": ("linear accuracy", printed)}, BESIDE)
    # The paper's table has two of these priors; its ablation has all of them, at μ = 200.
    printed = paper.ABLATION_NLS[name][200.0]
    beside = [*BESIDE, *(f"{one}, {score}" for one in on.structure for score in ("15-NN", "NMI"))]
    return run.rows(method, name, {"nls": ("NLS of the known", printed)}, beside)
