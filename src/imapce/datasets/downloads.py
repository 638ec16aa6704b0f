"""Where a data file is: the data folder, the user's cache, or, failing both, the data's home on the net.

A file is looked for in the folder named by the environment variable ``IMAPCE_DATA`` (unset or empty: no folder),
then in the user's cache, and is downloaded into that cache last. A download goes to a temporary file, is checked
against the known checksum and only then takes its name, so a cut connection leaves nothing behind.

    >>> locate(SYNTHETIC_PAPER_FILE).read_text()[:5]                                        # doctest: +SKIP
    'batch'
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import urllib.request
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import sklearn.datasets

from imapce.common.whole_files import whole_file
from imapce.errors import DataNotFoundError

# Called with the name of the file, the bytes received and the bytes promised (None where the server does not say):
# once before the first byte, then after every piece.
DownloadProgress = Callable[[str, int, int | None], None]

BYTES_PER_READ = 1 << 16
SECONDS_WITHOUT_AN_ANSWER = 30.0


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: its path inside a data folder, its home and the checksum of what lies there.

    ``also_accepted`` names other forms of the same data that are read when they lie in a folder (a packed
    copy, a converted subset); the download always gives ``relative_path``.
    """

    relative_path: str
    url: str
    algorithm: str
    checksum: str
    also_accepted: tuple[str, ...] = ()


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_GITHUB = "https://raw.githubusercontent.com/"

SYNTHETIC_PAPER_FILE = DataFile(
    "synthetic_dataset.csv",
    url=_GITHUB + "aida-ugent/revised-conditional-t-SNE/afda44b6d04066077d6fe46da1127de28de6a034"
    "/experiments/synthetic/synthetic_dataset.csv",
    algorithm="sha256",
    checksum="3f475661e898d2168794308cc4575513cb9ba2bd13eb322f090d59f8dc1e99ee",
)
ADULT_PAPER_FILE = DataFile(
    "uci_adult_data.csv",
    url=_GITHUB + "StavGer/IMAPCE/7a4777ae0033a8a6525a92ac3ecef0e9cdeef950/data/uci_adult_data.csv",
    algorithm="sha256",
    checksum="bdb931db264176f5c65e961b4bfca796c53500ef6b00b906142fc6b2fb1c065c",
)
ADULT_FULL_FILE = DataFile(
    "adult.data",
    url=_UCI + "adult/adult.data",
    algorithm="md5",
    checksum="5d7c39d7b8804f071cdd1f2a7c460872",
    also_accepted=("adult.data.gz",),
)
MNIST_FILES = (
    DataFile(
        "mnist/train-images-idx3-ubyte.gz",
        url=_MNIST + "train-images-idx3-ubyte.gz",
        algorithm="md5",
        checksum="f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ),
    DataFile(
        "mnist/train-labels-idx1-ubyte.gz",
        url=_MNIST + "train-labels-idx1-ubyte.gz",
        algorithm="md5",
        checksum="d53e105ee54ea40749a09fcbcd1e9432",
    ),
)
FASHION_MNIST_FILES = (
    DataFile(
        "fashion-mnist/train-images-idx3-ubyte.gz",
        url=_FASHION + "train-images-idx3-ubyte.gz",
        algorithm="md5",
        checksum="8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    ),
    DataFile(
        "fashion-mnist/train-labels-idx1-ubyte.gz",
        url=_FASHION + "train-labels-idx1-ubyte.gz",
        algorithm="md5",
        checksum="25c81989df183df01b3e8a0aad5dffbe",
    ),
)
CIFAR100_FILE = DataFile(
    "cifar-100-binary.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    algorithm="md5",
    checksum="03b5dce01913d631647c71ecec9e9cb8",
    also_accepted=("cifar100_gray28_train.npz",),
)


IMAGE_SEGMENTATION_FILE = "image_segmentation.csv"
IMAGE_SEGMENTATION_COLUMNS = (
    *("REGION.CENTROID.COL", "REGION.CENTROID.ROW", "REGION.PIXEL.COUNT"),
    *("SHORT.LINE.DENSITY.5", "SHORT.LINE.DENSITY.2", "vedge.mean", "vedge.sd", "hedge.mean", "hedge.sd"),
    *("intensity.mean", "R.mean", "B.mean", "G.mean", "ex.R.mean", "ex.B.mean", "ex.G.mean"),
    *("value.mean", "saturation.mean", "hue.mean"),
)


def data_folder() -> Path | None:
    """The user's folder of data files: ``IMAPCE_DATA``; None where that is unset or empty."""
    named = os.environ.get("IMAPCE_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """The user's cache: ``IMAPCE_CACHE``, else ``$XDG_CACHE_HOME/imapce``, else the habit of the system."""
    named = os.environ.get("IMAPCE_CACHE")
    if named:
        return Path(named).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg:
        return Path(xdg).expanduser() / "imapce"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "imapce"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "imapce" / "Cache"
    return Path.home() / ".cache" / "imapce"


def find(relative_paths: tuple[str, ...]) -> Path | None:
    """The first of these paths that exists, the data folder before the cache; None when there is none."""
    for folder in (data_folder(), cache_folder()):
        if folder is None:
            continue
        for relative in relative_paths:
            path = folder / relative
            if path.is_file():
                return path
    return None


def locate(file: DataFile, *, progress: DownloadProgress | None = None) -> Path:
    """The path of a data file, downloaded into the cache when it is in neither folder."""
    found = find((file.relative_path, *file.also_accepted))
    return found if found is not None else download(file, progress=progress)


def locate_image_segmentation() -> Path:
    """The path of Image Segmentation as comma-separated text, converted from OpenML where it is missing."""
    found = find((IMAGE_SEGMENTATION_FILE,))
    if found is not None:
        return found
    home = "OpenML data set 36"
    try:
        # A lost connection is told by the error below; scikit-learn's warning of its retry would come on top.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            # liac-arff: the other parser needs pandas, which imapce does not depend on.
            bunch = sklearn.datasets.fetch_openml(
                data_id=36, as_frame=False, parser="liac-arff", cache=False, n_retries=1
            )
        text = _image_segmentation_csv(bunch.data, bunch.target)
    except (OSError, HTTPException, ValueError) as reason:
        raise not_found(IMAGE_SEGMENTATION_FILE, home, reason) from reason

    def write(target: BinaryIO) -> None:
        target.write(text.encode("utf-8"))

    try:
        return write_to_cache(IMAGE_SEGMENTATION_FILE, write)
    except OSError as reason:
        raise not_found(IMAGE_SEGMENTATION_FILE, home, reason) from reason


def download(file: DataFile, *, progress: DownloadProgress | None = None) -> Path:
    """Fetch a file into the cache, whole and with the right checksum or not at all.

    Without a ``progress`` a terminal gets one line, since a large file takes minutes; anything else gets none.
    """

    def fetch(target: BinaryIO) -> None:
        digest = hashlib.new(file.algorithm, usedforsecurity=False)
        received, promised = _copy_from_url(file, target, digest.update, progress or _tell_a_terminal)
        if promised is not None and received != promised:
            raise _DownloadFailed(f"the transfer ended after {received} of {promised} bytes")
        if digest.hexdigest() != file.checksum:
            raise _DownloadFailed(f"its {file.algorithm} is {digest.hexdigest()}, not {file.checksum}")

    try:
        return write_to_cache(file.relative_path, fetch)
    except (_DownloadFailed, OSError, HTTPException) as reason:
        raise not_found(file.relative_path, file.url, reason) from reason


def write_to_cache(relative_path: str, write: Callable[[BinaryIO], None]) -> Path:
    """Let ``write`` fill a temporary file of the cache, which then takes its name; on error nothing stays."""
    destination = cache_folder() / relative_path
    destination.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(destination) as target:
        write(target)
    return destination


def not_found(relative_path: str, home: str, reason: object) -> DataNotFoundError:
    """The error for a file that is nowhere: which file, why the download failed, and both places to put it.

    >>> str(not_found("adult.data", "https://example.org", "no network"))[:43]
    'The data file adult.data is not on disk and'
    """
    folder = data_folder()
    in_cache = cache_folder() / relative_path
    if folder is None:
        places = f"{in_cache}, or at {relative_path} in a folder named by the environment variable IMAPCE_DATA"
    else:
        places = f"{folder / relative_path} or {in_cache}"
    return DataNotFoundError(
        f"The data file {relative_path} is not on disk and could not be fetched from {home} ({reason}): "
        f"put it at {places}."
    )


class _DownloadFailed(Exception):
    """The server answered, and what it sent is not the file."""


def _copy_from_url(
    file: DataFile, target: BinaryIO, observe: Callable[[bytes], None], progress: DownloadProgress
) -> tuple[int, int | None]:
    """Bytes received and bytes promised by the server (None when it does not say)."""
    with urllib.request.urlopen(file.url, timeout=SECONDS_WITHOUT_AN_ANSWER) as response:
        length = response.headers.get("Content-Length")
        promised = int(length) if length is not None and length.isdigit() else None
        received = 0
        progress(file.relative_path, received, promised)
        while piece := response.read(BYTES_PER_READ):
            target.write(piece)
            observe(piece)
            received += len(piece)
            progress(file.relative_path, received, promised)
    return received, promised


def _tell_a_terminal(name: str, done: int, total: int | None) -> None:
    # On stderr, so that what a command prints on stdout stays clean when piped.
    if done == 0 and sys.stderr.isatty():
        size = "" if total is None else f", {total / 1e6:.1f} MB"
        print(f"downloading {name}{size}", file=sys.stderr)


def _image_segmentation_csv(attributes: Any, classes: Any) -> str:
    attributes, classes = np.asarray(attributes, dtype=float), np.asarray(classes, dtype=str)
    names, counts = np.unique(classes, return_counts=True)
    # Columns are taken by position (OpenML spells the names its own way): the constant one must be third.
    as_expected = attributes.shape == (2310, 19) and np.all(attributes[:, 2] == 9)
    if not as_expected or len(names) != 7 or np.any(counts != 330):
        raise ValueError(f"it holds another table, of shape {attributes.shape} with {len(names)} classes")
    lines = io.StringIO()
    print("class", *IMAGE_SEGMENTATION_COLUMNS, sep=",", file=lines)
    for name, row in zip(classes, attributes, strict=True):
        print(name.upper(), *row.tolist(), sep=",", file=lines)
    return lines.getvalue()
