"""From a file or a data set to a study: which columns are features, which are known, which only colour the picture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from imapce import datasets
from imapce.app.study import Study
from imapce.common.words import listing
from imapce.datasets.catalogue import CATALOGUE
from imapce.errors import Argument, FileFormatError, FileName, InvalidValueError, Phrase, Reference
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.session import Exploration
from imapce.priors.kinds import Attributes, Prior
from imapce.tables.encode import LearnedTable, column_names, is_table
from imapce.tables.files import read_table
from imapce.tables.usable import usable_columns

ROLES = ("feature", "known", "label", "ignored")
# What a file of an upload may have and unpack to.
MOST_BYTES = 512 << 20
# More columns than this stay a matrix: a table of them would be a second copy of the data.
MOST_TABLE_COLUMNS = 200
_ANSWER = re.compile(r"(class|label|target|species|cell_?type|outcome|diagnosis|group)(_?name)?s?", re.IGNORECASE)

_LOADERS = {
    "synthetic": (datasets.make_synthetic, "imapce.datasets.make_synthetic()"),
    "digits": (datasets.load_digits, "imapce.datasets.load_digits()"),
    "synthetic_paper": (datasets.load_synthetic_paper, "imapce.datasets.load_synthetic_paper()"),
    "adult_paper": (lambda: datasets.fetch_adult("paper"), 'imapce.datasets.fetch_adult("paper")'),
    "adult_full": (lambda: datasets.fetch_adult("full"), 'imapce.datasets.fetch_adult("full")'),
    "image_segmentation": (datasets.fetch_image_segmentation, "imapce.datasets.fetch_image_segmentation()"),
    "mnist": (datasets.fetch_mnist, "imapce.datasets.fetch_mnist()"),
    "fashion_mnist": (datasets.fetch_fashion_mnist, "imapce.datasets.fetch_fashion_mnist()"),
    "cifar100_grey28": (datasets.fetch_cifar100, "imapce.datasets.fetch_cifar100()"),
}
_PICTURES = {"digits": (8, 8), "mnist": (28, 28), "fashion_mnist": (28, 28), "cifar100_grey28": (28, 28)}
_WORDS = {
    "synthetic": "Two loud batches hide three quiet cell types",
    "digits": "Handwritten digits, 8 × 8 pixels; hover shows the picture",
    "image_segmentation": "Seven kinds of outdoor surface, 19 measurements each",
    "adult_full": "People of the 1994 census",
    "adult_paper": "1,000 people of the 1994 census, as in the paper",
    "synthetic_paper": "The paper's own file of batches and cell types",
    "mnist": "Handwritten digits, 28 × 28 pixels",
    "fashion_mnist": "Clothes, 28 × 28 pixels",
    "cifar100_grey28": "Small photographs in grey",
}


def offered() -> list[dict[str, Any]]:
    """The data sets that can be opened without a download.

    >>> [one["name"] for one in offered()][:2]
    ['synthetic', 'digits']
    """
    return [
        {"name": one.name, "rows": one.rows, "columns": one.columns, "words": _WORDS[one.name], "source": one.source}
        for one in CATALOGUE
        if one.is_on_disk()
    ]


def dataset_study(name: str) -> Study:
    """A data set of the catalogue as a study; all its columns are features, its labels colour."""
    if name not in {one["name"] for one in offered()}:
        raise InvalidValueError(f"the data set must be one of those offered; got {name!r}.")
    load, call = _LOADERS[name]
    data = load()
    labels = {key: pa.array(values) for key, values in data.labels.items()}
    script = [f"data = {call}"]
    features: Any
    if data.X.shape[1] <= MOST_TABLE_COLUMNS:
        features = pa.table({key: data.X[:, j] for j, key in enumerate(data.feature_names)})
        table = pa.table({**labels, **{key: features.column(key) for key in data.feature_names}})
        script.append("X = imapce.tables.frame(dict(zip(data.feature_names, data.X.T)))")
    else:
        features, table = data.X, pa.table(labels)
        script.append("X = data.X")
    return Study(
        name,
        _exploration(features, []),
        features=features,
        table=table,
        labels=tuple(labels),
        picture=_PICTURES.get(name),
        script=tuple(script),
        labelled="data.labels[{names[0]!r}]",
    )


def _words_of_page(part: Reference) -> str:
    """Whoever sent a file knows it by its name, and where it was put is nobody's business."""
    if isinstance(part, FileName):
        return part.last
    own: dict[Reference, str] = {
        Argument("path"): "the file",
        Phrase("names", "must name"): "must be",
        Phrase("ends in", "must end in"): "must have a name that ends in",
    }
    return own.get(part, str(part))


def inspected(path: Path, most_bytes: int = MOST_BYTES) -> tuple[Any, list[dict[str, Any]]]:
    """What a file holds, and for every column its kind, the role it is given first, and why."""
    try:
        data = read_table(path, max_bytes=most_bytes)
    except FileFormatError as problem:
        raise FileFormatError(problem.rendered(_words_of_page)) from problem
    if not is_table(data):
        return data, []
    usable, reasons = usable_columns(data)
    told = []
    for place, name in enumerate(column_names(data, "the file")):
        kind = data.schema.types[place]
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        answer = _ANSWER.fullmatch(name.strip()) is not None
        role = "label" if answer and (name in usable or not number) else "feature" if name in usable else "ignored"
        words = "number" if number else "category" if name in usable else "text"
        told.append({"name": name, "kind": words, "role": role, "reason": reasons.get(name, "")})
    return data, told


def file_study(name: str, data: Any, roles: Mapping[str, str], *, color: str | None = None) -> Study:
    """A table with a role for every column, or a matrix, as a study."""
    read = f"imapce.tables.read_table({name!r})"
    if not is_table(data):
        return Study(name, _exploration(data, []), features=data, script=(f"X = {read}",))
    names = column_names(data, "the file")
    if strangers := [role for role in roles.values() if role not in ROLES]:
        raise InvalidValueError(f"the role of a column must be one of {listing(ROLES)}; got {strangers[0]!r}.")
    chosen = {column: roles.get(column, "ignored") for column in names}
    used = [column for column in names if chosen[column] in ("feature", "known")]
    known = [column for column in names if chosen[column] == "known"]
    if len(used) - len(known) < 2:
        raise InvalidValueError(
            f"two columns must be features to draw a view; {len(used) - len(known)} is: make more columns features."
        )
    features = LearnedTable.learn(data.select(used), "the file")
    reasons = usable_columns(features)[1]
    if reasons:
        column, reason = next(iter(reasons.items()))
        raise InvalidValueError(f"{column!r} cannot be a feature: it {reason}. Make it a label, or ignore it.")
    priors: list[Prior] = [Attributes(known)] if known else []
    missing = sum(features.summary.gaps.values())
    notes = [f"{missing:,} missing values were filled with the mean of their column."] if missing else []
    script = [f"data = {read}", f"X = data.select({used!r})"]
    return Study(
        name,
        _exploration(features, priors),
        features=features,
        table=data,
        priors=priors,
        labels=tuple(column for column in names if chosen[column] == "label"),
        color=color,
        script=tuple(script),
        notes=notes,
    )


def _exploration(features: Any, priors: list[Prior]) -> Exploration:
    estimator = IMAPCE(outliers="keep", missing="mean")
    return Exploration(features, prior=priors or None, estimator=estimator, random_state=0)
