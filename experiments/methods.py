"""The methods at the paper's settings, each with the prior it can use and the column of the paper it stands beside."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sklearn.exceptions import ConvergenceWarning

from experiments.cells import Cells
from experiments.problems import Problem
from imapce import IMAPCE, baselines

# Chosen by `python -m experiments tuning` as in the paper's supplement: one setting for all tasks, by the sum of their
# NLS (synthetic, Adult) and linear accuracy (images). The labels of the evaluation take part in it, there as here.
CTSNE = {"perplexity": 200, "beta": 1e-6}
FAIR_NERV = {"tau_in": 0.957, "tau_out": 0.995, "beta": 0.149, "gamma": 0.973, "omega": 0.903}


@dataclass(frozen=True)
class Method:
    """`given` says what the estimator is fitted with: the prior itself, its labels, nothing, or the prior to be erased.

    `column` is the paper's column it stands beside, `seeded` whether another seed gives another view of the same data.
    """

    name: str
    estimator: str
    given: Literal["prior", "labels", "nothing", "erased"]
    column: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    # Maps go by distances, and scaling every pixel to unit variance drowns them in the pixels that are almost always
    # blank: on CIFAR-100 ct-SNE and Fair-NeRV tell Trouser from Dress with 0.76 and 0.62 then, 0.86 and 0.82 without
    # (1,000 to 1,500 images of one draw; one map to the next varies by 0.15).
    pixels_as_they_are: bool = False

    def at(self, name: str, **parameters: Any) -> Method:
        """The same method at another setting."""
        return replace(self, name=name, parameters={**self.parameters, **parameters})

    def settings(self, problem: Problem, seed: int) -> dict[str, Any]:
        """All that decides what the view looks like."""
        by_problem: dict[str, Any] = {"mu": problem.mu} if "IMAPCE" in self.estimator else {}
        if self.pixels_as_they_are and problem.is_images:
            by_problem["standardize"] = False
        return {
            "data": problem.name,
            "draw": problem.draw,
            "rows": len(problem.X),
            "estimator": self.estimator,
            "given": self.given,
            "parameters": {**by_problem, **self.parameters},
            "seed": seed,
        }


IMAPCE_PAPER = Method("IMAPCE", "IMAPCE", "prior", "IMAPCE", {"alpha": 1.0})
# Nothing set; a method's own parameters win over the problem's μ.
AUTOMATIC = IMAPCE_PAPER.at("IMAPCE, automatic", alpha="auto", mu="auto")
ERASED = replace(AUTOMATIC, name="IMAPCE, automatic, erase=True", given="erased")
ONE_START = Method("IMAPCE, the authors' search", "SteepestIMAPCE", "prior", "IMAPCE", {"alpha": 1.0})
PCA = Method("cPCA, the authors' call (= PCA)", "CPCA", "prior", "cPCA", {"alpha": "paper"}, seeded=False)
CPCA = Method("cPCA", "CPCA", "prior", "cPCA", seeded=False)
TSNE = Method("ct-SNE, θ = 0 as published (= t-SNE)", "CTSNE", "nothing", "ct-SNE", {"perplexity": CTSNE["perplexity"]})
CT_SNE = Method("ct-SNE", "CTSNE", "labels", "ct-SNE", CTSNE, pixels_as_they_are=True)
FAIR = Method("Fair-NeRV", "FairNeRV", "labels", "Fair-NeRV", FAIR_NERV, pixels_as_they_are=True)
PURSUIT = Method("kurtosis pursuit", "KurtosisPursuit", "prior")
OTHERS = (
    Method("gcPCA", "GCPCA", "prior", seeded=False),
    Method("LEACE + PCA", "LEACE", "labels", seeded=False),
    PURSUIT,
    Method("SIDE", "SIDE", "labels"),
    Method("revised ct-SNE", "RevisedCTSNE", "labels", None, {"perplexity": 50}, pixels_as_they_are=True),
    Method("Fair-t-NeRV", "FairTNeRV", "labels", None, FAIR_NERV, pixels_as_they_are=True),
)
PAPER = (PCA, CPCA, TSNE, CT_SNE, FAIR, IMAPCE_PAPER, AUTOMATIC)


def estimator_class(name: str) -> Any:
    if name == "SteepestIMAPCE":
        # pymanopt is a peer to compare with and not always there.
        from experiments.authors_search import SteepestIMAPCE

        return SteepestIMAPCE
    return IMAPCE if name == "IMAPCE" else getattr(baselines, name)


def view(cells: Cells, method: Method, problem: Problem, seed: int) -> dict[str, Any]:
    """The cell of one view: `embedding` and `seconds`."""
    kind = estimator_class(method.estimator)
    settings = method.settings(problem, seed)

    def compute() -> dict[str, Any]:
        prior = problem.given(method.given)
        estimator = kind(**settings["parameters"], random_state=seed)
        start = time.perf_counter()
        with warnings.catch_warnings():
            # On CIFAR-100 no start of IMAPCE meets the tolerance within max_iter; the table is about what is found.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Digits leave pixels blank that the sums do not; cPCA tells so every time.
            warnings.filterwarnings("ignore", message="Samples.background. is constant")
            # Fair-NeRV is not free of scale: its neighbourhoods are as wide in the map as in the data.
            X = problem.X / 255 if settings["parameters"].get("standardize") is False else problem.X
            embedding = estimator.fit_transform(X, prior=prior)
        return {"embedding": embedding.astype("float32"), "seconds": time.perf_counter() - start}

    return cells.recall(settings, kind.__module__, compute)
