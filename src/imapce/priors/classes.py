"""A label prior: what ct-SNE, Fair-NeRV, LEACE and SIDE know about the rows is one class for each of them.

>>> label_codes(["b", "a", "b"], 3)
array([1, 0, 1])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.checks import as_codes
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.priors.kinds import (
    KINDS,
    Labels,
    Samples,
    Subset,
    as_list,
    known_columns,
    known_labels,
    known_rows,
    require_same_index,
)
from imapce.tables.reader import Reader

Codes = NDArray[np.intp]

# A column with more distinct values than this share of the rows is a measurement, not a label.
MOST_CLASSES = 0.2


def is_prior(prior: Any) -> bool:
    """Whether `prior` is made of Attributes, Labels, Samples and Subset (or is None), not an array of labels."""
    return (
        prior is None
        or isinstance(prior, KINDS)
        or (isinstance(prior, (list, tuple)) and any(isinstance(one, KINDS) for one in prior))
    )


def label_codes(labels: Any, n_rows: int) -> Codes:
    """The classes of an explicit label array as 0..L−1; names, strings and gaps in the numbering do not matter."""
    return as_codes("prior", labels, n_rows)


def prior_codes(
    prior: Any,
    X: Any,
    matrix: NDArray[np.float64],
    *,
    reader: Reader,
) -> Codes:
    """The classes a prior stands for: one per row, all zero when nothing is known.

    An array holds the labels themselves. `Attributes` gives one class for each combination of values its columns
    take, `Labels` its own, `Subset` one for the known rows and one for the rest; several priors give the combinations
    of their classes.
    A background table has no rows of X to label, so `Samples` is refused. `matrix` is X as `reader` read it.
    """
    n_rows = len(matrix)
    if not is_prior(prior):
        return label_codes(prior, n_rows)
    columns = [np.zeros(n_rows, dtype=np.intp)]
    for one in as_list(prior):
        if isinstance(one, Samples):
            raise InvalidTypeError(
                "prior must be labels for this method (an array, Attributes of label columns or a Subset); got "
                "Samples(background), which only IMAPCE, cPCA and gcPCA can use."
            )
        if isinstance(one, Subset):
            require_same_index(one, X)
            columns.append(known_rows(one, n_rows).astype(np.intp))
            continue
        if isinstance(one, Labels):
            require_same_index(one, X)
            columns.append(_codes_of(one, n_rows))
            continue
        for column in np.flatnonzero(known_columns(one, reader)):
            values = np.unique(matrix[:, column], return_inverse=True)[1]
            if values.max() + 1 > max(2, MOST_CLASSES * n_rows):
                raise InvalidValueError(
                    f"prior must be labels for this method, and column {column} of Attributes takes "
                    f"{values.max() + 1} values in {n_rows} rows; pass an array with a class for each row instead."
                )
            columns.append(values)
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _codes_of(labels: Labels, n_rows: int) -> Codes:
    """A class for every row, which is all that these methods can be told."""
    codes = as_codes("Labels(y)", known_labels(labels, n_rows).entries, n_rows)
    if codes.max() + 1 > max(2, MOST_CLASSES * n_rows):
        raise InvalidValueError(
            "Labels(y)",
            f"must be classes for this method, and it takes {codes.max() + 1} values in {n_rows} rows; "
            "cut the numbers into classes.",
        )
    return codes
