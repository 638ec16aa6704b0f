"""The benchmark sets of the paper, read from the files that :mod:`imapce.datasets.downloads` finds or fetches.

Each is looked for in the folder ``IMAPCE_DATA``, then in the user's cache, then it is downloaded, of which
``progress(name, bytes_done, bytes_total)`` tells. They come as comma-separated text, in IDX or in CIFAR-100's archive;
what a file must look like is checked here, since one put into a folder by hand carries no promise.
"""

from __future__ import annotations

import csv
import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from imapce.datasets import downloads as data_files
from imapce.datasets.catalogue import entry
from imapce.datasets.dataset import DIGIT_NAMES, Dataset, numbered_classes
from imapce.datasets.downloads import DataFile, DownloadProgress, locate
from imapce.errors import FileFormatError, InvalidValueError

CIFAR_RECORD_BYTES = 2 + 3 * 32 * 32
IDX_UNSIGNED_BYTE = 0x08

FASHION_NAMES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country"),
    "income",
)
ADULT_NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
# d_0..d_5 of the paper's file, matched with its raw columns by a correlation of 1 (gender: Female is high).
ADULT_PAPER_FEATURES = ("age", "education", "ethnicity", "gender", "hours_per_week", "income")
ADULT_PAPER_COMBINED = ("ethnicity_gender", "ethnicity_income", "gender_income", "ethnicity_gender_income")

_UNREADABLE = (
    *(ValueError, KeyError, IndexError, EOFError, UnicodeDecodeError),
    *(gzip.BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile),
)


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
        X = np.column_stack([table[name].astype(float) for name in features])
        return entry("synthetic_paper").of(X, features, {name: table[name].astype(int) for name in label_names})


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
    if version == "paper":
        path = locate(data_files.ADULT_PAPER_FILE, progress=progress)
        with reading(path):
            table = read_csv(path)
            labels = {"ethnicity": table["ethnicity"].astype(int)}
            labels |= {name: table[name] for name in ("gender", "income")}
            labels |= {name: table[name].astype(int) for name in ADULT_PAPER_COMBINED}
            X = np.column_stack([table[f"d_{column}"].astype(float) for column in range(6)])
            return entry("adult_paper").of(X, ADULT_PAPER_FEATURES, labels)
    path = locate(data_files.ADULT_FULL_FILE, progress=progress)
    with reading(path):
        table = read_csv(path, header=ADULT_COLUMNS)
        X = np.column_stack([table[name].astype(float) for name in ADULT_NUMERIC])
        labels = {name: table[name] for name in ADULT_COLUMNS if name not in ADULT_NUMERIC}
        return entry("adult_full").of(X, ADULT_NUMERIC, labels)


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
        columns = data_files.IMAGE_SEGMENTATION_COLUMNS
        X = np.column_stack([table[name].astype(float) for name in columns])
        return entry("image_segmentation").of(X, columns, numbered_classes(numbers, names))


def fetch_mnist(*, progress: DownloadProgress | None = None) -> Dataset:
    """MNIST, training part: 60,000 handwritten digits as rows of 784 grey values 0..255 (uint8).

    >>> fetch_mnist().X.shape
    (60000, 784)
    """
    return _idx_images("mnist", data_files.MNIST_FILES, DIGIT_NAMES, progress)


def fetch_fashion_mnist(*, progress: DownloadProgress | None = None) -> Dataset:
    """Fashion-MNIST, training part: 60,000 garments as rows of 784 grey values 0..255 (uint8).

    >>> fetch_fashion_mnist().labels["class_name"][0]
    np.str_('Ankle boot')
    """
    return _idx_images("fashion_mnist", data_files.FASHION_MNIST_FILES, FASHION_NAMES, progress)


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
        return entry("cifar100_grey28").of(images, _pixel_names(), numbered_classes(numbers, names))


def _pixel_names() -> tuple[str, ...]:
    return tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28))


def _idx_images(
    name: str, files: tuple[DataFile, DataFile], class_names: tuple[str, ...], progress: DownloadProgress | None
) -> Dataset:
    images_path, labels_path = (locate(file, progress=progress) for file in files)
    with reading(images_path):
        images = read_idx(images_path, n_dims=3)
    with reading(labels_path):
        labels = numbered_classes(read_idx(labels_path, n_dims=1), class_names)
        return entry(name).of(images.reshape(len(images), -1), _pixel_names(), labels)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a damaged or foreign file makes the code inside raise into one sentence about that file.

    >>> _ = Path("cut.gz").write_bytes(b"not packed")
    >>> with reading(Path("cut.gz")):
    ...     read_idx(Path("cut.gz"), n_dims=3)
    Traceback (most recent call last):
    imapce.errors.FileFormatError: The data file cut.gz cannot be read, it is damaged or another file of that name ...
    """
    try:
        yield
    except _UNREADABLE as reason:
        raise FileFormatError(
            f"The data file {path} cannot be read, it is damaged or another file of that name ({reason}): "
            "delete or replace it, and it is fetched again."
        ) from reason


def read_csv(path: Path, header: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
    """Columns of text by name; the first line names them unless ``header`` does. A ``.gz`` file is unpacked.

    Blanks around a value and empty lines are dropped (Adult has both).

    >>> _ = Path("adult.data.gz").write_bytes(gzip.compress(b"39, Private\\n50, ?\\n"))
    >>> read_csv(Path("adult.data.gz"), header=("age", "workclass"))["age"]
    array(['39', '50'], dtype='<U2')
    """
    if path.suffix == ".gz":
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    else:
        text = path.read_text(encoding="utf-8")
    rows = [[value.strip() for value in row] for row in csv.reader(text.splitlines()) if row]
    names = list(header) if header is not None else (rows.pop(0) if rows else [])
    if not rows:
        raise ValueError("it has no rows")
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(f"row {number} has {len(row)} values for {len(names)} columns")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def read_idx(path: Path, n_dims: int) -> np.ndarray:
    """Unsigned bytes in the IDX format: two zero bytes, the type, the number of sizes, the sizes, the data.

    >>> _ = Path("labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(Path("labels-idx1-ubyte"), n_dims=1)
    array([7, 2, 1], dtype=uint8)
    """
    packed = path.read_bytes()
    content = gzip.decompress(packed) if path.suffix == ".gz" else packed
    if content[:4] != bytes([0, 0, IDX_UNSIGNED_BYTE, n_dims]):
        raise ValueError(f"its first bytes {content[:4].hex()} are not those of {n_dims}-dimensional IDX bytes")
    sizes = np.frombuffer(content, dtype=">u4", count=n_dims, offset=4).astype(int)
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_dims)
    if len(values) != np.prod(sizes):
        raise ValueError(f"it holds {len(values)} values where its sizes {sizes.tolist()} ask for {np.prod(sizes)}")
    return values.reshape(sizes)


def read_cifar100(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grey 28x28 images (n x 784, uint8), fine class numbers and the 100 class names.

    Read from the original archive (``.tar.gz``, all 50,000 training rows) or from a converted ``.npz``.

    >>> np.savez("grey.npz", images=np.zeros((1, 784), np.uint8), labels=np.array([0]), label_names=np.array(["apple"]))
    >>> images, numbers, names = read_cifar100(Path("grey.npz"))
    >>> images.shape, str(names[0])
    ((1, 784), 'apple')
    """
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["images"], arrays["labels"], arrays["label_names"]
    # Members are read in memory, never extracted: a path inside an archive may point anywhere.
    with tarfile.open(path, "r:gz") as archive:
        records = np.frombuffer(_member_bytes(archive, "cifar-100-binary/train.bin"), dtype=np.uint8)
        listed = _member_bytes(archive, "cifar-100-binary/fine_label_names.txt").decode("ascii")
    if len(records) == 0 or len(records) % CIFAR_RECORD_BYTES:
        raise ValueError(f"train.bin has {len(records)} bytes, not a multiple of {CIFAR_RECORD_BYTES}")
    records = records.reshape(-1, CIFAR_RECORD_BYTES)
    # A record is the coarse class, the fine class, then the red, green and blue planes.
    return grey_crop(records[:, 2:].reshape(-1, 3, 32, 32)), records[:, 1], np.array(listed.split())


def grey_crop(planes: np.ndarray) -> np.ndarray:
    """Grey (19595 R + 38470 G + 7471 B + 32768) >> 16 of rows and columns 2..29, one flat row per image."""
    red, green, blue = (planes[:, channel, 2:30, 2:30].astype(np.uint32) for channel in range(3))
    grey = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
    return grey.astype(np.uint8).reshape(len(planes), -1)


def _member_bytes(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise ValueError(f"{name} is not a file in it")
    return member.read()
