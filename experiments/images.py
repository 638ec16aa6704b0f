"""Superimposed images: linear and SVM accuracy, F1 and recall of the clothes for three pairs of classes each."""

from __future__ import annotations

from experiments import paper
from experiments.methods import ONE_START, PAPER, TSNE, Method
from experiments.problems import TABLE_1
from experiments.results import Row
from experiments.running import PAIRWISE, Run

BESIDE = ("NLS / ceiling", "prior, linear", "prior, 15-NN", "chance", "clothes, 15-NN", "clothes, NMI")


def mnist_fmnist(run: Run) -> list[Row]:
    """Digits under clothes; the authors' sums wrap at 256, so their way stands below the right one."""
    names = [name for name in paper.LINEAR if name.startswith("mnist")]
    return [row for name in names for row in [*compared(run, name), *compared(run, f"{name} as uint8")]]


def cifar_fmnist(run: Run) -> list[Row]:
    """Photographs under clothes; at μ = 1e7 the way of searching decides, so the authors' stands below ours."""
    names = [name for name in paper.LINEAR if name.startswith("cifar")]
    return [row for name in names for row in [*compared(run, name), *one_start(run, name)]]


def one_start(run: Run, name: str) -> list[Row]:
    return run.rows(ONE_START, name, wanted(name, ONE_START), BESIDE)


def compared(run: Run, name: str) -> list[Row]:
    """The paper's methods on one pair; of the authors' sums the slow maps only for the pair of Table 1."""
    printed = name.removesuffix(" as uint8")
    shown = [method for method in PAPER if method is not TSNE]
    if name != printed and printed not in TABLE_1:
        shown = [method for method in shown if method.estimator not in PAIRWISE]
    return [row for method in shown for row in run.rows(method, name, wanted(printed, method), BESIDE)]


def wanted(name: str, method: Method) -> dict[str, tuple[str, float | None]]:
    """The scores of one row of the paper's tables. Its recall is that of the class of the first test row."""
    column = paper.METHODS.index(method.column or "")
    accuracy, f1, recall = paper.SVM[name][column]
    return {
        "linear accuracy": ("linear accuracy", paper.LINEAR[name][column]),
        "svm accuracy": ("SVM accuracy", accuracy),
        "svm f1": ("SVM F1", f1),
        "svm recall_authors": ("SVM recall, authors'", recall),
        "svm recall": ("SVM recall, mean of classes", None),
    }
