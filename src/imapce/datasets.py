"""Data to try a view on: two sets that need no file, the benchmark sets of the paper, superimposed images.

    >>> load_digits()
    Dataset(digits: 1797 rows x 64 columns of float64; labels class (10), class_name (10))

``make_synthetic`` and ``load_digits`` work anywhere. The others read the files of :mod:`imapce.data_files`:
the folder ``IMAPCE_DATA``, then the user's cache, then a download.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import sklearn.datasets

from imapce import data_files
from imapce.data_files import DataFile, locate
from imapce.data_formats import (
    ADULT_COLUMNS,
    ADULT_NUMERIC,
    ADULT_PAPER_COMBINED,
    ADULT_PAPER_FEATURES,
    DIGIT_NAMES,
    FASHION_NAMES,
    read_cifar100,
    read_csv,
    read_idx,
    reading,
)
from imapce.errors import InvalidTypeError, InvalidValueError

Labels = dict[str, np.ndarray]
RandomState = int | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, what is known about them, and where they come from.

    ``labels`` maps a label's name to one value per row. ``background`` holds rows of a prior that are not in
    ``X`` but have its columns, and ``background_labels`` what is known about those.

    >>> digits = load_digits()
    >>> digits.X.shape, digits.labels["class"][:3]
    ((1797, 64), array([0, 1, 2]))
    """

    name: str
    X: np.ndarray
    feature_names: tuple[str, ...]
    labels: Labels
    source: str
    licence: str
    background: np.ndarray | None = None
    background_labels: Labels | None = None

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.X.shape[1] != len(self.feature_names):
            raise InvalidValueError(
                f"X must have one column for each of the {len(self.feature_names)} feature_names, got shape "
                f"{self.X.shape}: give both from the same table."
            )
        _check_one_label_per_row("labels", self.labels, len(self.X))
        if self.background is not None and self.background.shape[1:] != self.X.shape[1:]:
            raise InvalidValueError(
                f"background must have the {self.X.shape[1]} columns of X, got shape "
                f"{self.background.shape}: give rows of the same features."
            )
        rows_of_background = 0 if self.background is None else len(self.background)
        _check_one_label_per_row("background_labels", self.background_labels or {}, rows_of_background)

    def __repr__(self) -> str:
        parts = [f"{self.name}: {self.X.shape[0]} rows x {self.X.shape[1]} columns of {self.X.dtype}"]
        if self.labels:
            counted = (f"{name} ({len(np.unique(values))})" for name, values in self.labels.items())
            parts.append("labels " + ", ".join(counted))
        if self.background is not None:
            parts.append(f"background of {len(self.background)} rows")
        return f"Dataset({'; '.join(parts)})"


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
    return Dataset(
        name="synthetic",
        X=np.hstack([structured, rng.normal(size=(n_samples, 4))]),
        feature_names=tuple(f"d_{column}" for column in range(10)),
        labels={"batch": batch, "celltype": celltype, "combined_cluster": 3 * batch + celltype},
        source="generated by imapce.datasets.make_synthetic",
        licence="none: generated",
    )


def load_digits() -> Dataset:
    """Scikit-learn's 1,797 handwritten digits of 8x8 pixels, values 0..16; no file is needed.

    >>> load_digits()
    Dataset(digits: 1797 rows x 64 columns of float64; labels class (10), class_name (10))
    """
    bunch = sklearn.datasets.load_digits()
    return Dataset(
        name="digits",
        X=bunch.data,
        feature_names=tuple(bunch.feature_names),
        labels=_class_labels(bunch.target, DIGIT_NAMES),
        source="UCI Machine Learning Repository, Optical Recognition of Handwritten Digits (1998)",
        licence="CC BY 4.0",
    )


def load_synthetic_paper() -> Dataset:
    """The synthetic set of the paper as its authors ship it: 1,500 rows, ten standardised columns.

    >>> load_synthetic_paper().labels["batch"].sum()
    np.int64(900)
    """
    path = locate(data_files.SYNTHETIC_PAPER_FILE)
    features = tuple(f"d_{column}" for column in range(10))
    label_names = ("batch", "celltype", "combined_cluster")
    with reading(path):
        table = read_csv(path)
        return Dataset(
            name="synthetic_paper",
            X=np.column_stack([table[name].astype(float) for name in features]),
            feature_names=features,
            labels={name: table[name].astype(int) for name in label_names},
            source="github.com/aida-ugent/revised-conditional-t-SNE, also in github.com/StavGer/IMAPCE",
            licence="MIT",
        )


def fetch_adult(version: Literal["paper", "full"] = "paper") -> Dataset:
    """UCI Adult: the 1,000 standardised rows of the paper, or the full training part of 32,561 rows.

    ``"paper"``: six standardised columns; labels ethnicity (1 white, 0 other), gender, income and the
    combined ones. ``"full"``: the six numeric columns as they are, the nine text columns as labels; a missing
    value is ``"?"``.

    >>> fetch_adult().feature_names
    ('age', 'education', 'ethnicity', 'gender', 'hours_per_week', 'income')
    """
    if version not in ("paper", "full"):
        raise InvalidValueError(f"version must be 'paper' or 'full', got {version!r}: choose one of the two.")
    source = "Becker and Kohavi, UCI Machine Learning Repository, Adult (1996)"
    if version == "paper":
        path = locate(data_files.ADULT_PAPER_FILE)
        with reading(path):
            table = read_csv(path)
            labels = {"ethnicity": table["ethnicity"].astype(int)}
            labels |= {name: table[name] for name in ("gender", "income")}
            labels |= {name: table[name].astype(int) for name in ADULT_PAPER_COMBINED}
            return Dataset(
                name="adult_paper",
                X=np.column_stack([table[f"d_{column}"].astype(float) for column in range(6)]),
                feature_names=ADULT_PAPER_FEATURES,
                labels=labels,
                source=source + ", preprocessed in github.com/StavGer/IMAPCE",
                licence="CC BY 4.0 (Adult); the preprocessing repository states none",
            )
    path = locate(data_files.ADULT_FULL_FILE)
    with reading(path):
        table = read_csv(path, header=ADULT_COLUMNS)
        return Dataset(
            name="adult_full",
            X=np.column_stack([table[name].astype(float) for name in ADULT_NUMERIC]),
            feature_names=ADULT_NUMERIC,
            labels={name: table[name] for name in ADULT_COLUMNS if name not in ADULT_NUMERIC},
            source=source,
            licence="CC BY 4.0",
        )


def fetch_image_segmentation() -> Dataset:
    """UCI Image Segmentation: 2,310 regions of outdoor images, 19 attributes, seven classes of 330 rows.

    ``REGION.PIXEL.COUNT`` is 9 everywhere, and 224 rows repeat an earlier one. The download comes from OpenML
    (data set 36), where the rows may be in another order.

    >>> fetch_image_segmentation()
    Dataset(image_segmentation: 2310 rows x 19 columns of float64; labels class (7), class_name (7))
    """
    path = data_files.locate_image_segmentation()
    with reading(path):
        table = read_csv(path)
        names, numbers = np.unique(table["class"], return_inverse=True)
        return Dataset(
            name="image_segmentation",
            X=np.column_stack([table[name].astype(float) for name in data_files.IMAGE_SEGMENTATION_COLUMNS]),
            feature_names=data_files.IMAGE_SEGMENTATION_COLUMNS,
            labels=_class_labels(numbers, names),
            source="UCI Machine Learning Repository, Image Segmentation (1990)",
            licence="CC BY 4.0",
        )


def fetch_mnist() -> Dataset:
    """MNIST, training part: 60,000 handwritten digits as rows of 784 grey values 0..255 (uint8).

    >>> fetch_mnist().X.shape
    (60000, 784)
    """
    source = "LeCun, Cortes and Burges, The MNIST database of handwritten digits"
    return _idx_images("mnist", data_files.MNIST_FILES, DIGIT_NAMES, source, "CC BY-SA 3.0")


def fetch_fashion_mnist() -> Dataset:
    """Fashion-MNIST, training part: 60,000 garments as rows of 784 grey values 0..255 (uint8).

    >>> fetch_fashion_mnist().labels["class_name"][0]
    np.str_('Ankle boot')
    """
    return _idx_images(
        "fashion_mnist",
        data_files.FASHION_MNIST_FILES,
        FASHION_NAMES,
        "Zalando Research, Fashion-MNIST",
        "MIT",
    )


def fetch_cifar100() -> Dataset:
    """CIFAR-100, training part, grey and cropped to 28x28: rows of 784 values 0..255 (uint8), 100 classes.

    Grey is (19595 R + 38470 G + 7471 B + 32768) >> 16, the crop rows and columns 2 to 29. The converted file
    ``cifar100_gray28_train.npz`` (15,000 rows, shuffled) is read where it is found; the original archive
    gives all 50,000 rows in their original order, so "the first n rows" are not the same rows in the two.

    >>> fetch_cifar100().X.shape[1]
    784
    """
    path = locate(data_files.CIFAR100_FILE)
    with reading(path):
        images, numbers, names = read_cifar100(path)
        return Dataset(
            name="cifar100_grey28",
            X=images,
            feature_names=_pixel_names(),
            labels=_class_labels(numbers, names),
            source="Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009), CIFAR-100",
            licence="none stated: cite the report",
        )


def make_superimposed(
    reference: Dataset,
    background: Dataset,
    classes: Sequence[str | int],
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

    >>> make_superimposed(fetch_fashion_mnist(), fetch_mnist(), ["Sandal", "Sneaker"]).X.shape
    (6000, 784)
    """
    _check_count("n", n, at_least=1, reason="a data set has rows")
    _check_count("n_background", n_background, at_least=0, reason="it counts rows")
    for role, data in (("reference", reference), ("background", background)):
        if not isinstance(data, Dataset):
            raise InvalidTypeError(f"{role} must be a Dataset, got {type(data).__name__}: pass fetch_mnist() for one.")
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
            f"classes must be a list of class names or numbers, got {classes!r}: write ['Sandal', 'Sneaker'] or [5, 7]."
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
            f"random_state must be an integer from 0, a numpy Generator or None, got {random_state!r}: "
            "pass 0 for a repeatable draw."
        ) from reason


def _check_count(name: str, value: int, *, at_least: int, reason: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InvalidValueError(
            f"{name} must be a whole number of at least {at_least} ({reason}), got {value!r}: "
            "give a larger whole number."
        )


def _check_one_label_per_row(name: str, labels: Labels, n_rows: int) -> None:
    for key, values in labels.items():
        if len(values) != n_rows:
            raise InvalidValueError(
                f"{name}[{key!r}] must have one value for each of {n_rows} rows, got {len(values)}: pass one per row."
            )


def _class_labels(numbers: np.ndarray, names: Sequence[str] | np.ndarray) -> Labels:
    numbers = np.asarray(numbers).astype(np.int64)
    return {"class": numbers, "class_name": np.asarray(names, dtype=str)[numbers]}


def _pixel_names() -> tuple[str, ...]:
    return tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28))


def _idx_images(
    name: str, files: tuple[DataFile, DataFile], class_names: tuple[str, ...], source: str, licence: str
) -> Dataset:
    images_path, labels_path = locate(files[0]), locate(files[1])
    with reading(images_path):
        images = read_idx(images_path, n_dims=3)
    with reading(labels_path):
        return Dataset(
            name=name,
            X=images.reshape(len(images), -1),
            feature_names=_pixel_names(),
            labels=_class_labels(read_idx(labels_path, n_dims=1), class_names),
            source=source,
            licence=licence,
        )
