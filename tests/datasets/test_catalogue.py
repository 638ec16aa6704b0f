"""The catalogue says of every data set what the data set says of itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from imapce import datasets
from imapce.datasets.catalogue import CATALOGUE, CatalogueEntry
from imapce.datasets.dataset import Dataset

LOADED: dict[str, Callable[[], Dataset]] = {
    "synthetic": datasets.make_synthetic,
    "digits": datasets.load_digits,
    "synthetic_paper": datasets.load_synthetic_paper,
    "adult_paper": datasets.fetch_adult,
    "adult_full": lambda: datasets.fetch_adult("full"),
    "image_segmentation": datasets.fetch_image_segmentation,
}
ENTRIES = [
    pytest.param(entry, id=entry.name, marks=[pytest.mark.data(*paths) for paths in entry.files])
    for entry in CATALOGUE
    if entry.name in LOADED
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_catalogue_tells_what_the_data_set_says(entry: CatalogueEntry) -> None:
    data = LOADED[entry.name]()
    assert (entry.rows, entry.columns) == data.X.shape
    assert (entry.name, entry.source, entry.licence) == (data.name, data.source, data.licence)
    assert entry.is_on_disk()
