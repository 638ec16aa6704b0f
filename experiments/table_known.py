"""What is known as a column: how well it can still be read from the view, and what the view shows instead.

Five tables with their class known, vowel with its speaker or sex known, raw Adult with race known. Read-back is
balanced: chance is one over the number of classes. "Nothing known" is the view of the features alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import rivals, table_suite
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted
from experiments.table_views import NEIGHBOURS, fitted
from imapce.datasets import fetch_adult
from imapce.metrics import knn_accuracy, residual_predictability
from imapce.priors.kinds import Attributes

READ_BACK = ("iris", "wine", "zoo", "ecoli", "vowel")
READ_BACK_KEYS = ("knn", "linear", "nothing known", "erased")
QUICK_ROWS = 5_000
# A source column carries the view where it has so large a share of the squared weights.
CARRIES = 0.05


def known_columns(run: Run) -> tuple[list[Block], list[Wanted]]:
    """A class known as a column, and vowel's speaker and sex: what of them can still be read, the class beside it."""
    read_back: list[list[Cell]] = []
    lines = []
    for table in map(table_suite.read, READ_BACK):
        scores = _known(run, table, "class", table.classes)
        chance = 1 / table.n_classes
        read_back.append([table.name, chance, *(scores[one] for one in READ_BACK_KEYS)])
        lines.append(
            Wanted(f"{table.name}, class known: 15-NN read-back over chance", 0.1, scores["knn"] - chance, True)
        )
        run.note(f"{table.name}, class known: read back {scores['knn']:.3f}, chance {chance:.3f}")
    vowel = table_suite.read("vowel")
    beside: list[list[Cell]] = []
    for name, values in vowel.known.items():
        scores = _known(run, vowel, name, values)
        beside.append(
            [f"vowel, {name} known", scores["class"], scores["class, nothing known"], 1 / len(np.unique(values))]
            + [scores[one] for one in READ_BACK_KEYS]
        )
        run.note(f"vowel, {name} known: class {scores['class']:.3f}, read back {scores['knn']:.3f}")
    keys = ("read back: 15-NN", "linear", "nothing known", "erase=True")
    return [
        Block("Class known as a column: balanced read-back from the view", ("table", "chance", *keys), read_back),
        Block(
            "Vowel: 15-NN of the class, and read-back of the known",
            ("known", "class", "class, nothing known", "chance", *keys),
            beside,
        ),
    ], lines


def _known(run: Run, table: table_suite.Table, name: str, values: np.ndarray) -> dict[str, float]:
    settings = {"suite": "known column", "table": table.name, "data": table.digest, "known": name}

    def compute() -> dict[str, float]:
        X = table_suite.as_arrow(table.X, {name: values.tolist()})
        view = fitted(X, 0, Attributes([name])).transform(X)
        free = fitted(table.X, 0).transform(table.X)
        erased = fitted(X, 0, Attributes([name], erase=True)).transform(X)
        readers = residual_predictability(view, values)
        return {
            "knn": readers["knn"],
            "linear": readers["linear"],
            "nothing known": residual_predictability(free, values)["knn"],
            "erased": residual_predictability(erased, values)["knn"],
            "class": knn_accuracy(view, table.classes, NEIGHBOURS),
            "class, nothing known": knn_accuracy(free, table.classes, NEIGHBOURS),
        }

    return run.cells.recall(settings, __name__, compute)


def adult(run: Run) -> tuple[Block, list[Wanted]]:
    """Raw Adult, mixed columns, race known: which columns carry the view, and 15-NN of income beside PCA's."""
    settings = {"suite": "adult", "rows": QUICK_ROWS if run.quick else "all"}
    found = run.cells.recall(settings, __name__, lambda: _adult_scores(QUICK_ROWS if run.quick else None))
    rows: list[list[Cell]] = [
        ["source columns that carry the view", str(found["names"])],
        ["15-NN of income: ours", found["income"]],
        ["15-NN of income: PCA", found["PCA"]],
        ["race read back, 15-NN, balanced", found["race"]],
        ["chance", found["chance"]],
    ]
    lines = [
        Wanted("Adult, race known: source columns that carry the view", 3.0, float(found["columns"])),
        Wanted("Adult, race known: 15-NN of income over PCA's", 0.0, found["income"] - found["PCA"]),
    ]
    run.note(f"Adult: income {found['income']:.3f}, PCA {found['PCA']:.3f}, carried by {found['names']}")
    return Block("Adult as it is (32,561 rows, mixed), race known", ("what", "seen"), rows), lines


def _adult_scores(n_rows: int | None) -> dict[str, Any]:
    data = fetch_adult("full")
    chosen = np.arange(len(data.X))
    if n_rows is not None:
        chosen = np.random.default_rng(0).choice(len(chosen), n_rows, replace=False)
    texts = {name: np.asarray(values)[chosen].astype(str) for name, values in data.labels.items()}
    income = texts.pop("income")
    numbers = np.asarray(data.X, dtype=np.float64)[chosen]
    X = table_suite.as_arrow(numbers, {name: values.tolist() for name, values in texts.items()})
    model = fitted(X, 0, Attributes(["race"]))
    view = model.transform(X)
    weights = np.sum(model.components_**2, axis=0) / len(model.components_)
    # An encoded name is the column's own, or the column's with a level behind it.
    shares = {
        name: float(sum(w for one, w in zip(model.encoded_feature_names_, weights, strict=True) if _is_of(one, name)))
        for name in X.column_names
    }
    carrying = sorted((name for name in shares if shares[name] >= CARRIES), key=lambda name: -shares[name])
    readers = residual_predictability(view, texts["race"])
    return {
        "columns": len(carrying),
        "names": ", ".join(f"{name} {shares[name]:.2f}" for name in carrying),
        "income": knn_accuracy(view, income, NEIGHBOURS),
        "PCA": knn_accuracy(rivals.pca_plane(rivals.plain_matrix(X)), income, NEIGHBOURS),
        "race": readers["knn"],
        "chance": readers["chance"],
    }


def _is_of(encoded: str, column: str) -> bool:
    return encoded == column or encoded.startswith(f"{column}=")
