"""Data to try a view on: two sets that need no file, the benchmark sets of the paper, superimposed images.

>>> load_digits()
Dataset(digits: 1797 rows x 64 columns of float64; labels class (10), class_name (10))

`make_synthetic` and `load_digits` work anywhere. The others read the files of `imapce.datasets.downloads`: the folder
`IMAPCE_DATA`, then the user's cache, then a download.
"""

from imapce.datasets.dataset import Dataset
from imapce.datasets.fetchers import (
    fetch_adult,
    fetch_cifar100,
    fetch_fashion_mnist,
    fetch_image_segmentation,
    fetch_mnist,
    load_synthetic_paper,
)
from imapce.datasets.generators import load_digits, make_superimposed, make_synthetic

__all__ = [
    "Dataset",
    "fetch_adult",
    "fetch_cifar100",
    "fetch_fashion_mnist",
    "fetch_image_segmentation",
    "fetch_mnist",
    "load_digits",
    "load_synthetic_paper",
    "make_superimposed",
    "make_synthetic",
]
