"""Data that need no file: the paper's synthetic recipe, scikit-learn's digits, and images laid over one another.

>>> make_synthetic(300)
Dataset(synthetic: 300 rows x 10 columns of float64; labels batch (2), celltype (3), combined_cluster (6))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sklearn.datasets

from imapce.common.checks import is_whole
from imapce.datasets.catalogue import entry
from imapce.datasets.dataset import DIGIT_NAMES, Dataset, numbered_classes
from imapce.errors import InvalidTypeError, InvalidValueError

RandomState = int | np.random.Generator | None


def make_synthetic(n_samples: int = 1500, *, random_state: RandomState = 0) -> Dataset:
    """The paper's synthetic recipe: a loud grouping in dimensions 1-4, a quiet one in 5-6, noise in 7-10.

    Every row belongs to one of two batches (shares 40 % and 60 %; centres in dimensions 1-4 from N(0, 25))
    and, crossed with it, to one of three cell types (equal shares; centres in dimensions 5-6 from N(0, 1));
    N(0, 0.01) is added. Dimensions 7-10 are N(0, 1). The second argument of N is a variance. Rows come in
    random order.

    Centres drawn at random can coincide, and then there is no grouping to find: each set of centres is
    redrawn until all of them lie at least 1.0 apart, ten standard deviations of the noise. The file of the
    paper (:func:`load_synthetic_paper`) is in addition standardised; this one is not.

    >>> make_synthetic(600).X.shape
    (600, 10)
    """
    _check_count("n_samples", n_samples, at_least=6, reason="there are six combined clusters")
    rng = _generator(random_state)
    noise_sd = 0.1
    batch_centres = _centres_apart(rng, n_centres=2, n_dims=4, sd=5.0, at_least=10 * noise_sd)
    celltype_centres = _centres_apart(rng, n_centres=3, n_dims=2, sd=1.0, at_least=10 * noise_sd)
    in_first_batch = max(3, round(0.4 * n_samples))
    batch = np.repeat([0, 1], [in_first_batch, n_samples - in_first_batch])
    # Counting through all rows, not within each batch, keeps the thirds equal for every n_samples.
    celltype = np.arange(n_samples) % 3
    order = rng.permutation(n_samples)
    batch, celltype = batch[order], celltype[order]
    structured = np.hstack([batch_centres[batch], celltype_centres[celltype]])
    structured += rng.normal(scale=noise_sd, size=structured.shape)
    return entry("synthetic").of(
        np.hstack([structured, rng.normal(size=(n_samples, 4))]),
        tuple(f"d_{column}" for column in range(10)),
        {"batch": batch, "celltype": celltype, "combined_cluster": 3 * batch + celltype},
    )


def load_digits() -> Dataset:
    """Scikit-learn's 1,797 handwritten digits of 8x8 pixels, values 0..16; no file is needed.

    >>> load_digits()
    Dataset(digits: 1797 rows x 64 columns of float64; labels class (10), class_name (10))
    """
    bunch = sklearn.datasets.load_digits()
    return entry("digits").of(bunch.data, tuple(bunch.feature_names), numbered_classes(bunch.target, DIGIT_NAMES))


def make_superimposed(
    reference: Dataset,
    background: Dataset,
    classes: Sequence[str | int],
    *,
    n: int = 6000,
    n_background: int = 1000,
    random_state: RandomState = None,
) -> Dataset:
    """Reference images of some classes, each with a random background image added on top, as in the paper.

    ``n`` rows are drawn from the reference rows whose class (name or number) is in ``classes``, and ``n``
    from the background; they are summed as float64, since uint8 would wrap at 256. ``n_background`` further
    background rows, none of them used in a sum, become the ``background`` of the result. Its labels:
    ``class`` and ``class_name`` of the reference row, ``background_class`` and ``background_class_name`` of
    the row added to it.

    The paper's images are ``make_superimposed(fetch_fashion_mnist(), fetch_mnist(), ["Sandal", "Sneaker"])``.

    >>> make_superimposed(load_digits(), load_digits(), [0, 1], n=50, n_background=20, random_state=0)
    Dataset(digits+digits: 50 rows x 64 columns of float64; labels class (2), class_name (2), background_class (10),
    background_class_name (10); background of 20 rows)
    """
    _check_count("n", n, at_least=1, reason="a data set has rows")
    _check_count("n_background", n_background, at_least=0, reason="it counts rows")
    for role, data in (("reference", reference), ("background", background)):
        if not isinstance(data, Dataset):
            raise InvalidTypeError(
                role, "must be a Dataset", f"{type(data).__name__}", way_out="pass fetch_mnist() for one"
            )
        if not {"class", "class_name"} <= data.labels.keys():
            raise InvalidValueError(
                f"{role} must have the labels 'class' and 'class_name', got {sorted(data.labels)}: "
                "pass a set of images."
            )
    if reference.X.shape[1] != background.X.shape[1]:
        raise InvalidValueError(
            f"background must have the {reference.X.shape[1]} columns of the reference, got "
            f"{background.X.shape[1]}: crop or resize one of the two."
        )
    candidates = _rows_of_classes(reference, classes)
    if len(candidates) < n:
        raise InvalidValueError(
            f"n must not exceed the {len(candidates)} rows of {reference.name} in classes {list(classes)}, "
            f"got {n}: ask for fewer rows or more classes."
        )
    if len(background.X) < n + n_background:
        raise InvalidValueError(
            f"n + n_background must not exceed the {len(background.X)} rows of {background.name}, got {n} + "
            f"{n_background}: ask for fewer rows of either."
        )
    rng = _generator(random_state)
    shown = rng.choice(candidates, size=n, replace=False)
    drawn = rng.choice(len(background.X), size=n + n_background, replace=False)
    added, kept_apart = drawn[:n], drawn[n:]
    summed = reference.X[shown].astype(np.float64)
    summed += background.X[added]
    labels = {name: reference.labels[name][shown] for name in ("class", "class_name")}
    labels |= {f"background_{name}": background.labels[name][added] for name in ("class", "class_name")}
    return Dataset(
        name=f"{background.name}+{reference.name}",
        X=summed,
        feature_names=reference.feature_names,
        labels=labels,
        source=f"sums of {reference.source} and {background.source}",
        licence=f"{reference.licence}; {background.licence}",
        background=background.X[kept_apart].astype(np.float64),
        background_labels={name: background.labels[name][kept_apart] for name in ("class", "class_name")},
    )


def _rows_of_classes(data: Dataset, classes: Sequence[str | int]) -> np.ndarray:
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray) or len(classes) == 0:
        raise InvalidValueError(
            "classes",
            "must be a list of class names or numbers",
            repr(classes),
            way_out="write ['Sandal', 'Sneaker'] or [5, 7]",
        )
    chosen = np.zeros(len(data.X), dtype=bool)
    for wanted in classes:
        matches = data.labels["class_name" if isinstance(wanted, str) else "class"] == wanted
        if not np.any(matches):
            known = ", ".join(f"{number} {name}" for number, name in _numbered_names(data))
            raise InvalidValueError(f"classes must name classes of {data.name}, got {wanted!r}: choose among {known}.")
        chosen |= matches
    return np.flatnonzero(chosen)


def _numbered_names(data: Dataset) -> list[tuple[int, str]]:
    numbers, first_rows = np.unique(data.labels["class"], return_index=True)
    return [(int(number), str(data.labels["class_name"][row])) for number, row in zip(numbers, first_rows, strict=True)]


def _centres_apart(rng: np.random.Generator, *, n_centres: int, n_dims: int, sd: float, at_least: float) -> np.ndarray:
    while True:
        centres = rng.normal(scale=sd, size=(n_centres, n_dims))
        distances = np.linalg.norm(centres[:, None] - centres[None, :], axis=2)
        if distances[np.triu_indices(n_centres, k=1)].min() >= at_least:
            return centres


def _generator(random_state: RandomState) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as reason:
        raise InvalidTypeError(
            "random_state",
            "must be an integer from 0, a numpy Generator or None",
            repr(random_state),
            way_out="pass 0 for a repeatable draw",
        ) from reason


def _check_count(name: str, value: int, *, at_least: int, reason: str) -> None:
    if not is_whole(value) or value < at_least:
        raise InvalidValueError(
            name,
            f"must be a whole number of at least {at_least} ({reason})",
            repr(value),
            way_out="give a larger whole number",
        )
