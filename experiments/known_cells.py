"""The computations of `known`, a cell each: views and clusters with a label known, a random one, and by two doors."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics import normalized_mutual_info_score as nmi

from experiments import correcting, made_tables, table_suite
from experiments.judging import accuracy, judged
from experiments.rival_mixtures import mixture_by_bic
from experiments.running import Run
from experiments.stories import Story
from experiments.table_views import CODE, JUDGED, fitted
from imapce.exploration import Exploration
from imapce.priors.kinds import Attributes, Labels

Ints = NDArray[np.int32]

EXPLORING = "imapce.exploration"
PLAIN_CODE = "experiments.correcting"


def our_view(run: Run, story: Story) -> dict[str, float]:
    """`content`, `within`, `read back` and the seconds of the default with the label known."""

    def compute() -> dict[str, Any]:
        start = time.process_time()
        model = fitted(story.X, 0, Labels(story.known))
        seconds = time.process_time() - start
        view = model.transform(story.X, labels=story.known)
        return {**judged(view, story.looked_for, story.known), "seconds": seconds}

    return run.cells.recall({**story.settings, **JUDGED, "what": "view"}, CODE, compute)


def plain_view(run: Run, story: Story, way: str) -> dict[str, float]:
    def compute() -> dict[str, Any]:
        return dict(judged(correcting.plane(way, story.X, story.known), story.looked_for, story.known))

    return run.cells.recall({**story.settings, **JUDGED, "what": "plane", "way": way}, PLAIN_CODE, compute)


def our_clusters(run: Run, story: Story, *, knowing: bool = True) -> Ints:
    """`labels_` of the exploration to its end; -1 is a row never taken."""
    prior = Labels(story.known) if knowing else None
    settings = {**story.settings, "what": "clusters", "knowing": knowing}
    return np.asarray(run.cells.recall(settings, EXPLORING, lambda: {"labels": explored(story.X, prior)})["labels"])


def explored(X: Any, prior: Any) -> Ints:
    with warnings.catch_warnings():
        # What a session says about a table is for its user; here it is counted what it takes.
        warnings.simplefilter("ignore")
        return np.asarray(Exploration(X, prior=prior, random_state=0).run().labels_, dtype=np.int32)


def harmony_clusters(run: Run, story: Story) -> Ints:
    """The Gaussian mixture with the best BIC of the rows that Harmony has corrected."""

    def compute() -> dict[str, Any]:
        space = correcting.corrected(correcting.HARMONY, story.X, story.known).space
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return {"labels": mixture_by_bic(space, 0, 0).astype(np.int32)}

    return np.asarray(run.cells.recall({**story.settings, "what": "Harmony + mixture"}, PLAIN_CODE, compute)["labels"])


def with_random_label(run: Run, table: table_suite.Table, n_classes: int, draw: int) -> dict[str, float]:
    """15-NN and NMI of the class, in the view and of the clusters; with no class at all nothing is known."""
    settings = {"suite": "random label", "table": table.name, "data": table.digest, "classes": n_classes, "draw": draw}

    def compute() -> dict[str, Any]:
        drawn = np.random.default_rng([draw, n_classes]).integers(0, max(1, n_classes), len(table.X)).astype(str)
        prior = Labels(drawn) if n_classes else None
        model = fitted(table.X, 0, prior)
        view = model.transform(table.X, labels=drawn if n_classes else None)
        return {"view": accuracy(view, table.classes), "clusters": float(nmi(table.classes, explored(table.X, prior)))}

    return run.cells.recall({**settings, **JUDGED}, EXPLORING, compute)


def doors(run: Run, table: table_suite.Table, category: str) -> dict[str, float]:
    """How far apart a category leads as a known column and as a known label: degrees of views, ARI of clusters."""

    def compute() -> dict[str, Any]:
        told = {**table.known, "class": table.classes}[category]
        beside = made_tables.as_arrow(table.X, {category: told.tolist()})
        column, label = fitted(beside, 0, Attributes([category])), fitted(table.X, 0, Labels(told))
        n_features = table.X.shape[1]
        angle = subspace_angles(column.components_[:, :n_features].T, label.components_.T).max()
        clusters = explored(beside, Attributes([category])), explored(table.X, Labels(told))
        return {"angle": float(np.degrees(angle)), "agreement": float(adjusted_rand_score(*clusters))}

    settings = {"suite": "doors", "table": table.name, "data": table.digest, "known": category}
    return run.cells.recall(settings, EXPLORING, compute)
