"""What μ does to IMAPCE: the paper's three ablation tables."""

from __future__ import annotations

from experiments import paper
from experiments.methods import IMAPCE_PAPER, ONE_START, Method
from experiments.results import Row
from experiments.running import Run


def ablation_mu(run: Run) -> list[Row]:
    rows = []
    for name, printed in paper.ABLATION_NLS.items():
        for mu, nls in printed.items():
            rows += run.rows(_at(mu), name, {"nls": ("NLS of the known", nls)}, ["NLS / ceiling"])
    for name, by_mu in paper.ABLATION_SVM.items():
        # The authors' digits were added in uint8, which wraps at 256.
        for data in (name, f"{name} as uint8") if name.startswith("mnist") else (name,):
            for mu, (accuracy, f1, recall) in by_mu.items():
                wanted = {
                    "svm accuracy": ("SVM accuracy", accuracy),
                    "svm f1": ("SVM F1", f1),
                    "svm recall_authors": ("SVM recall, authors'", recall),
                }
                rows += run.rows(_at(mu), data, wanted, ["linear accuracy"])
                if mu == max(by_mu):
                    # Where only the kurtosis counts, the way of searching decides as much as the objective.
                    rows += run.rows(_at(mu, ONE_START), data, wanted, ["linear accuracy"])
    return rows


def _at(mu: float, method: Method = IMAPCE_PAPER) -> Method:
    return method.at(f"{method.name}, μ = {mu:g}", mu=mu)
