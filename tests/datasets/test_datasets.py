"""Data sets: counts of the real files, the generators, and the way a missing file is fetched."""

from __future__ import annotations

import numpy as np
import pytest

from imapce import datasets
from imapce.datasets import downloads as data_files
from imapce.datasets import fetchers as data_formats
from imapce.datasets.dataset import Dataset
from imapce.datasets.generators import make_superimposed, make_synthetic
from imapce.errors import InvalidTypeError, InvalidValueError


def counts(values: np.ndarray) -> dict[object, int]:
    names, numbers = np.unique(values, return_counts=True)
    return dict(zip(names.tolist(), numbers.tolist(), strict=True))


def test_synthetic_follows_the_recipe() -> None:
    data = make_synthetic()
    assert data.X.shape == (1500, 10)
    assert counts(data.labels["batch"]) == {0: 600, 1: 900}
    assert counts(data.labels["celltype"]) == {0: 500, 1: 500, 2: 500}
    assert counts(data.labels["combined_cluster"]) == {0: 200, 1: 200, 2: 200, 3: 300, 4: 300, 5: 300}
    assert np.array_equal(data.labels["combined_cluster"], 3 * data.labels["batch"] + data.labels["celltype"])
    for label, columns in (("batch", slice(0, 4)), ("celltype", slice(4, 6))):
        for value in np.unique(data.labels[label]):
            spread = data.X[data.labels[label] == value, columns].std(axis=0)
            assert np.allclose(spread, 0.1, rtol=0.12)
    assert np.allclose(data.X[:, 6:].std(axis=0), 1.0, rtol=0.1)


def test_synthetic_centres_are_apart_and_of_the_right_scale() -> None:
    batch_scale, celltype_scale = [], []
    for seed in range(60):
        data = make_synthetic(60, random_state=seed)
        for label, columns, scale in (
            ("batch", slice(0, 4), batch_scale),
            ("celltype", slice(4, 6), celltype_scale),
        ):
            codes = data.labels[label]
            centres = np.array([data.X[codes == value, columns].mean(axis=0) for value in np.unique(codes)])
            gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(len(centres), 1)]
            assert gaps.min() > 0.85
            scale.append(np.mean(centres**2))
    assert np.mean(batch_scale) == pytest.approx(25, rel=0.2)
    assert 1.0 < np.mean(celltype_scale) < 1.6


def test_synthetic_random_state() -> None:
    assert np.array_equal(make_synthetic(30, random_state=3).X, make_synthetic(30, random_state=3).X)
    assert np.array_equal(
        make_synthetic(30, random_state=np.random.default_rng(3)).X, make_synthetic(30, random_state=3).X
    )
    assert not np.array_equal(make_synthetic(30, random_state=None).X, make_synthetic(30, random_state=None).X)
    for n_samples in (6, 7, 50, 101):
        data = make_synthetic(n_samples)
        sizes = counts(data.labels["celltype"]).values()
        assert max(sizes) - min(sizes) <= 1
        assert len(counts(data.labels["combined_cluster"])) == 6
    with pytest.raises(InvalidValueError, match="n_samples"):
        make_synthetic(5)
    with pytest.raises(InvalidTypeError, match="random_state"):
        make_synthetic(30, random_state="zero")  # type: ignore[arg-type]


def test_digits_and_repr() -> None:
    digits = datasets.load_digits()
    assert repr(digits) == ("Dataset(digits: 1797 rows x 64 columns of float64; labels class (10), class_name (10))")
    assert digits.labels["class_name"][7] == "7"
    with pytest.raises(InvalidValueError, match="one value for each of 2 rows"):
        Dataset("x", np.zeros((2, 1)), ("a",), labels={"y": np.zeros(3)}, source="", licence="")
    with pytest.raises(InvalidValueError, match="feature_names"):
        Dataset("x", np.zeros((2, 1)), ("a", "b"), labels={}, source="", licence="")
    with pytest.raises(InvalidValueError, match="background"):
        Dataset("x", np.zeros((2, 1)), ("a",), labels={}, source="", licence="", background=np.zeros((2, 2)))


@pytest.mark.data("synthetic_dataset.csv")
def test_synthetic_of_the_paper() -> None:
    data = datasets.load_synthetic_paper()
    assert data.X.shape == (1500, 10)
    assert counts(data.labels["batch"]) == {0: 600, 1: 900}
    assert counts(data.labels["celltype"]) == {0: 500, 1: 500, 2: 500}
    assert sorted(counts(data.labels["combined_cluster"]).values()) == [200] * 3 + [300] * 3


@pytest.mark.data("uci_adult_data.csv")
def test_adult_of_the_paper_names_each_column_rightly() -> None:
    data = datasets.fetch_adult()
    assert data.X.shape == (1000, 6)
    assert np.allclose(data.X.std(axis=0), 1.0)
    assert counts(data.labels["ethnicity"]) == {0: 124, 1: 876}
    assert counts(data.labels["gender"]) == {"Female": 336, "Male": 664}
    assert counts(data.labels["income"]) == {"<=50K": 752, ">50K": 248}
    assert sorted(counts(data.labels["ethnicity_gender"]).values()) == [47, 77, 289, 587]
    path = data_files.find(("uci_adult_data.csv",))
    assert path is not None
    raw = data_formats.read_csv(path)
    for column, name in enumerate(data.feature_names):
        codes = np.unique(raw[name], return_inverse=True)[1]
        values = codes if name in ("gender", "income") else raw[name].astype(float)
        assert abs(np.corrcoef(values, data.X[:, column])[0, 1]) == pytest.approx(1.0), name


@pytest.mark.data("adult.data", "adult.data.gz")
def test_full_adult() -> None:
    data = datasets.fetch_adult("full")
    assert data.X.shape == (32561, 6)
    assert data.X[0].tolist() == [39, 77516, 13, 2174, 0, 40]
    assert counts(data.labels["income"]) == {"<=50K": 24720, ">50K": 7841}
    assert counts(data.labels["sex"]) == {"Female": 10771, "Male": 21790}
    assert sum(np.sum(values == "?") for values in data.labels.values()) == 4262
    with pytest.raises(InvalidValueError, match="'paper' or 'full'"):
        datasets.fetch_adult("half")  # type: ignore[arg-type]


@pytest.mark.data("image_segmentation.csv")
def test_image_segmentation() -> None:
    data = datasets.fetch_image_segmentation()
    assert data.X.shape == (2310, 19)
    assert set(counts(data.labels["class_name"]).values()) == {330}
    assert np.all(data.X[:, data.feature_names.index("REGION.PIXEL.COUNT")] == 9)
    everything = np.column_stack([data.labels["class"], data.X])
    assert len(everything) - len(np.unique(everything, axis=0)) == 224


@pytest.mark.data("mnist/train-images-idx3-ubyte.gz")
@pytest.mark.data("fashion-mnist/train-images-idx3-ubyte.gz")
def test_image_sets_and_their_sums() -> None:
    mnist, fashion = datasets.fetch_mnist(), datasets.fetch_fashion_mnist()
    digits = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(mnist.labels["class"]).tolist() == digits
    assert set(counts(fashion.labels["class_name"]).values()) == {6000}
    assert fashion.labels["class_name"][fashion.labels["class"] == 9][0] == "Ankle boot"
    for data in (mnist, fashion):
        assert (data.X.shape, data.X.dtype) == ((60000, 784), np.uint8)
    summed = make_superimposed(fashion, mnist, ["Sandal", "Sneaker"], random_state=0)
    assert (summed.X.shape, summed.X.dtype) == ((6000, 784), np.float64)
    assert summed.X.max() > 255
    assert set(summed.labels["class_name"]) == {"Sandal", "Sneaker"}
    assert summed.background is not None
    assert summed.background.shape == (1000, 784)


@pytest.mark.data("cifar100_gray28_train.npz", "cifar-100-binary.tar.gz")
def test_cifar100() -> None:
    data = datasets.fetch_cifar100()
    assert data.X.shape[0] in (15000, 50000)
    assert (data.X.shape[1], data.X.dtype) == (784, np.uint8)
    assert len(counts(data.labels["class"])) == 100
    assert data.labels["class_name"][data.labels["class"] == 99][0] == "worm"
    assert min(counts(data.labels["class"][:5000]).values()) >= 33


def numbered_images(name: str, n: int, step: float, n_classes: int) -> Dataset:
    """Row i is i * step everywhere, so that a sum tells which two rows it was made of."""
    numbers = np.arange(n) % n_classes
    labels = {"class": numbers, "class_name": np.array([f"{name} {number}" for number in numbers])}
    return Dataset(
        name, np.repeat(np.arange(n)[:, None] * step, 2, axis=1), ("p", "q"), labels=labels, source="s", licence="l"
    )


def test_superimposed_rows_are_sums_and_the_background_is_disjoint() -> None:
    reference, background = numbered_images("ref", 90, 1000.0, 3), numbered_images("back", 50, 1.0, 5)
    result = make_superimposed(reference, background, ["ref 0", 2], n=40, n_background=10, random_state=1)
    reference_rows, background_rows = np.divmod(result.X[:, 0].astype(int), 1000)
    assert len(set(reference_rows)) == len(set(background_rows)) == 40
    assert np.array_equal(result.labels["class"], reference_rows % 3)
    assert set(result.labels["class_name"]) == {"ref 0", "ref 2"}
    assert np.array_equal(result.labels["background_class"], background_rows % 5)
    assert result.background is not None
    assert result.background_labels is not None
    assert set(result.background[:, 0].astype(int)) == set(range(50)) - set(background_rows)
    assert np.array_equal(result.background_labels["class"], result.background[:, 0] % 5)


def test_superimposed_does_not_wrap_bytes() -> None:
    bright = numbered_images("ref", 4, 0.0, 1)
    bright = Dataset(
        "bright", np.full((4, 2), 200, np.uint8), ("p", "q"), labels=bright.labels, source="s", licence="l"
    )
    assert np.all(make_superimposed(bright, bright, [0], n=2, n_background=2).X == 400)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 31}, "30 rows of ref"),
        ({"n_background": 31}, "50 rows of back"),
        ({"classes": ["shoe"]}, "0 ref 0, 1 ref 1, 2 ref 2"),
        ({"classes": "ref 0"}, "list of class names"),
        ({"classes": []}, "list of class names"),
        ({"n": 0}, "n must be a whole number"),
        ({"background": make_synthetic(30)}, "'class' and 'class_name'"),
        ({"background": datasets.load_digits()}, "columns of the reference"),
    ],
)
def test_superimposed_errors(change: dict[str, object], words: str) -> None:
    arguments: dict[str, object] = {
        "reference": numbered_images("ref", 90, 1.0, 3),
        "background": numbered_images("back", 50, 1.0, 5),
        "classes": [1],
        "n": 20,
        "n_background": 5,
    }
    with pytest.raises(InvalidValueError, match=words):
        make_superimposed(**(arguments | change))  # type: ignore[arg-type]
