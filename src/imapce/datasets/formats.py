"""The formats the benchmark data come in: comma-separated text, IDX, CIFAR-100's archive; their columns.

>>> _ = Path("points.csv").write_text("batch,d_0\\n0,1.5\\n1,2.5\\n")
>>> read_csv(Path("points.csv"))["batch"]
array(['0', '1'], dtype='<U1')

What a file must look like is checked here, since a file put into a folder by hand carries no promise; every
complaint leaves :func:`reading` as a :class:`~imapce.errors.FileFormatError` that names the file.
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

import numpy as np

from imapce.errors import FileFormatError

CIFAR_RECORD_BYTES = 2 + 3 * 32 * 32
IDX_UNSIGNED_BYTE = 0x08

FASHION_NAMES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
DIGIT_NAMES = tuple(str(digit) for digit in range(10))
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
    """Grey (19595 R + 38470 G + 7471 B + 32768) >> 16 of rows and columns 2..29, one flat row per image.

    >>> grey_crop(np.full((1, 3, 32, 32), 255, dtype=np.uint8))[0, :3]                      # doctest: +SKIP
    array([255, 255, 255], dtype=uint8)
    """
    red, green, blue = (planes[:, channel, 2:30, 2:30].astype(np.uint32) for channel in range(3))
    grey = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
    return grey.astype(np.uint8).reshape(len(planes), -1)


def _member_bytes(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise ValueError(f"{name} is not a file in it")
    return member.read()
