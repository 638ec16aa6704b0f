"""The benchmark sets of the paper, read from the files that :mod:`imapce.datasets.downloads` finds or fetches.

Each is looked for in the folder ``IMAPCE_DATA``, then in the user's cache, then it is downloaded, of which
``progress(name, bytes_done, bytes_total)`` tells.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from imapce.datasets import downloads as data_files
from imapce.datasets.dataset import Dataset, numbered_classes
from imapce.datasets.downloads import DataFile, DownloadProgress, locate
from imapce.datasets.formats import (
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
from imapce.errors import InvalidValueError


def load_synthetic_paper(*, progress: DownloadProgress | None = None) -> Dataset:
    """The synthetic set of the paper as its authors ship it: 1,500 rows, ten standardised columns.

    >>> load_synthetic_paper().labels["batch"].sum()
    np.int64(900)
    """
    path = locate(data_files.SYNTHETIC_PAPER_FILE, progress=progress)
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


def fetch_adult(version: Literal["paper", "full"] = "paper", *, progress: DownloadProgress | None = None) -> Dataset:
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
        path = locate(data_files.ADULT_PAPER_FILE, progress=progress)
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
    path = locate(data_files.ADULT_FULL_FILE, progress=progress)
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
            labels=numbered_classes(numbers, names),
            source="UCI Machine Learning Repository, Image Segmentation (1990)",
            licence="CC BY 4.0",
        )


def fetch_mnist(*, progress: DownloadProgress | None = None) -> Dataset:
    """MNIST, training part: 60,000 handwritten digits as rows of 784 grey values 0..255 (uint8).

    >>> fetch_mnist().X.shape
    (60000, 784)
    """
    source = "LeCun, Cortes and Burges, The MNIST database of handwritten digits"
    return _idx_images("mnist", data_files.MNIST_FILES, DIGIT_NAMES, source, "CC BY-SA 3.0", progress)


def fetch_fashion_mnist(*, progress: DownloadProgress | None = None) -> Dataset:
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
        progress,
    )


def fetch_cifar100(*, progress: DownloadProgress | None = None) -> Dataset:
    """CIFAR-100, training part, grey and cropped to 28x28: rows of 784 values 0..255 (uint8), 100 classes.

    Grey is (19595 R + 38470 G + 7471 B + 32768) >> 16, the crop rows and columns 2 to 29. The converted file
    ``cifar100_gray28_train.npz`` (15,000 rows, shuffled) is read where it is found; the original archive
    gives all 50,000 rows in their original order, so "the first n rows" are not the same rows in the two.

    >>> fetch_cifar100().X.shape[1]
    784
    """
    path = locate(data_files.CIFAR100_FILE, progress=progress)
    with reading(path):
        images, numbers, names = read_cifar100(path)
        return Dataset(
            name="cifar100_grey28",
            X=images,
            feature_names=_pixel_names(),
            labels=numbered_classes(numbers, names),
            source="Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009), CIFAR-100",
            licence="none stated: cite the report",
        )


def _pixel_names() -> tuple[str, ...]:
    return tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28))


def _idx_images(
    name: str,
    files: tuple[DataFile, DataFile],
    class_names: tuple[str, ...],
    source: str,
    licence: str,
    progress: DownloadProgress | None,
) -> Dataset:
    images_path, labels_path = (locate(file, progress=progress) for file in files)
    with reading(images_path):
        images = read_idx(images_path, n_dims=3)
    with reading(labels_path):
        return Dataset(
            name=name,
            X=images.reshape(len(images), -1),
            feature_names=_pixel_names(),
            labels=numbered_classes(read_idx(labels_path, n_dims=1), class_names),
            source=source,
            licence=licence,
        )
