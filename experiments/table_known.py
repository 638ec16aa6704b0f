"""The class itself known, as a label, of 13 tables: what can still be read from the view; and raw Adult, race known.

With the default the class is explained away, which takes the means of its classes and not their other differences;
with `erase=True` nothing linear of it is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import made_tables, table_suite
from experiments.judging import accuracy, largest_share
from experiments.plain_rows import pca_plane, plain_matrix
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from experiments.table_views import CODE, JUDGED, fitted
from imapce.datasets import fetch_adult
from imapce.metrics import residual_predictability
from imapce.priors.kinds import Attributes, Labels

CLASS_KNOWN = (
    *("iris", "wine", "penguins", "olive", "flea", "dermatology", "zoo", "vowel", "image segmentation"),
    *("biopsy", "ecoli", "thyroid", "glass"),
)
# Classes that differ in their means alone, or nearly so: what is explained away is gone there.
HIDDEN = ("iris", "wine", "penguins", "olive", "flea", "dermatology")
QUICK_ROWS = 5_000
# A source column carries the view where it has so large a share of the squared weights.
CARRIES = 0.05


def class_known(run: Run) -> tuple[Block, list[Wanted]]:
    """The class itself known: 15-NN accuracy with which it is read back, over the share of the largest class."""
    rows: list[list[Cell]] = []
    over = {}
    for table in map(table_suite.read, CLASS_KNOWN):
        settings = {"suite": "class known", "table": table.name, "data": table.digest, **JUDGED}
        scores = run.cells.recall(settings, CODE, lambda table=table: _read_back(table))
        over[table.name] = scores["view"] - scores["chance"]
        rows.append([table.name, scores["chance"], *(scores[one] for one in READ), over[table.name]])
        run.note(f"{table.name}, class known: read back {scores['view']:.3f}, largest class {scores['chance']:.3f}")
    columns = [np.array([row[place] for row in rows], dtype=np.float64) for place in range(1, len(rows[0]))]
    rows.append(["mean", *(mean(column[~np.isnan(column)]) for column in columns)])
    what = "class known: read back over the largest class"
    lines = [Wanted(f"{what}, mean of {len(over)}", 0.08, mean(list(over.values())), True)]
    lines += [Wanted(f"{one}, {what}", 0.1, over[one], True) for one in HIDDEN]
    head = ("table", "largest class", "read back: explained away", "erase=True", "nothing known", "away over largest")
    return Block("The class itself known: 15-NN accuracy of the class in the view", head, rows), lines


READ = ("view", "erased", "nothing known")


def _read_back(table: table_suite.Table) -> dict[str, float]:
    model = fitted(table.X, 0, Labels(table.classes))
    return {
        "view": accuracy(model.transform(table.X, labels=table.classes), table.classes),
        "erased": _read_back_erased(table),
        "nothing known": accuracy(fitted(table.X, 0).transform(table.X), table.classes),
        "chance": largest_share(table.classes),
    }


def _read_back_erased(table: table_suite.Table) -> float:
    """NaN where as many classes as there are columns leave no direction to look along."""
    if table.n_classes - 1 > table.X.shape[1] - 2:
        return float("nan")
    model = fitted(table.X, 0, Labels(table.classes, erase=True))
    return accuracy(model.transform(table.X), table.classes)


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
    X = made_tables.as_arrow(numbers, {name: values.tolist() for name, values in texts.items()})
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
        "income": accuracy(view, income),
        "PCA": accuracy(pca_plane(plain_matrix(X)), income),
        "race": readers["knn"],
        "chance": readers["chance"],
    }


def _is_of(encoded: str, column: str) -> bool:
    return encoded == column or encoded.startswith(f"{column}=")
