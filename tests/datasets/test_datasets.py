"""Data sets: counts of the real files, the generators, and the way a missing file is fetched."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import shutil
import socket
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from imapce import datasets
from imapce.datasets import downloads as data_files
from imapce.datasets import formats as data_formats
from imapce.datasets.dataset import Dataset
from imapce.datasets.downloads import DataFile
from imapce.datasets.generators import make_superimposed, make_synthetic
from imapce.errors import DataNotFoundError, FileFormatError, InvalidTypeError, InvalidValueError


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


CONTENT = b"some,data\n" * 30000


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty data folder and an empty cache."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("IMAPCE_DATA", str(data))
    monkeypatch.setenv("IMAPCE_CACHE", str(cache))
    return data, cache


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine as its own server, past any proxy; a machine without even that network cannot run the test."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    try:
        socket.create_connection(listener.getsockname(), timeout=5).close()
    except OSError as error:
        pytest.skip(f"the loopback network is down ({error})")
    finally:
        listener.close()


@pytest.fixture
def server(loopback: None) -> Iterator[str]:
    """A local home of data: /good whole, /cut ends early, anything else is 404."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in ("/good", "/cut"):
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if self.path == "/good" else CONTENT[:100000])

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output clean."""

    httpd = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def remote(url: str, content: bytes = CONTENT) -> DataFile:
    return DataFile("sub/table.csv", url, algorithm="sha256", checksum=hashlib.sha256(content).hexdigest())


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_download_lands_in_the_cache_and_is_made_once(folders: tuple[Path, Path], server: str) -> None:
    _, cache = folders
    path = data_files.locate(remote(server + "/good"))
    assert path == cache / "sub" / "table.csv"
    assert path.read_bytes() == CONTENT
    assert files_under(cache) == [path]
    assert data_files.locate(remote("http://127.0.0.1:9/never-asked")) == path


@pytest.mark.usefixtures("folders")
def test_a_download_tells_its_progress_from_nothing_to_all(server: str) -> None:
    told: list[tuple[str, int, int | None]] = []
    data_files.locate(remote(server + "/good"), progress=lambda *news: told.append(news))
    assert {name for name, _, _ in told} == {"sub/table.csv"}
    assert {total for _, _, total in told} == {len(CONTENT)}
    received = [done for _, done, _ in told]
    assert (received[0], received[-1]) == (0, len(CONTENT))
    assert received == sorted(set(received))


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize(("terminal", "line"), [(True, "downloading sub/table.csv, 0.3 MB\n"), (False, "")])
def test_a_download_nobody_follows_is_one_line_in_a_terminal(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, line: str
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    data_files.locate(remote(server + "/good"))
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize(
    ("where", "content", "reason"),
    [
        ("/good", b"other", "its sha256 is"),
        ("/cut", CONTENT, "100000 of 300000 bytes"),
        ("/none", CONTENT, "404"),
    ],
)
def test_a_failed_download_says_where_to_put_the_file_and_leaves_nothing(
    folders: tuple[Path, Path], server: str, where: str, content: bytes, reason: str
) -> None:
    data, cache = folders
    with pytest.raises(DataNotFoundError, match=reason) as caught:
        data_files.locate(remote(server + where, content))
    message = str(caught.value)
    assert str(data / "sub" / "table.csv") in message
    assert str(cache / "sub" / "table.csv") in message
    assert server + where in message
    assert files_under(cache) == []


@pytest.mark.usefixtures("loopback")
def test_no_server_and_no_data_folder(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("IMAPCE_DATA")
    inside = tmp_path / "elsewhere" / "project"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    with pytest.raises(DataNotFoundError, match="named by the environment variable IMAPCE_DATA") as caught:
        data_files.locate(remote("http://127.0.0.1:9/down"))
    assert "refused" in str(caught.value)
    assert files_under(folders[1]) == []


def test_an_interrupted_download_leaves_nothing(folders: tuple[Path, Path]) -> None:
    def write_and_stop(target: io.BufferedWriter) -> None:
        target.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data_files.write_to_cache("sub/table.csv", write_and_stop)  # type: ignore[arg-type]
    assert files_under(folders[1]) == []


def test_the_data_folder_comes_before_the_cache(folders: tuple[Path, Path]) -> None:
    data, cache = folders
    cache.mkdir()
    (cache / "a").write_text("cache")
    assert data_files.find(("a",)) == cache / "a"
    (data / "a").write_text("data")
    assert data_files.find(("a",)) == data / "a"


def test_default_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("IMAPCE_DATA", raising=False)
    monkeypatch.delenv("IMAPCE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    assert data_files.cache_folder() == tmp_path / "xdg" / "imapce"
    assert data_files.data_folder() is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert data_files.data_folder() is None
    monkeypatch.setenv("IMAPCE_DATA", "")
    assert data_files.data_folder() is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    for platform, tail in (("linux", ".cache/imapce"), ("darwin", "Library/Caches/imapce")):
        monkeypatch.setattr("sys.platform", platform)
        assert data_files.cache_folder() == tmp_path / tail


def test_cifar_archive_is_read_in_place(folders: tuple[Path, Path]) -> None:
    data, _ = folders
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 256, (5, 3, 32, 32), dtype=np.uint8)
    fine = np.array([3, 0, 99, 7, 3], dtype=np.uint8)
    records = np.hstack([np.zeros((5, 1), np.uint8), fine[:, None], planes.reshape(5, -1)]).tobytes()
    names = "\n".join(f"kind_{number}" for number in range(100)).encode() + b"\n"
    with tarfile.open(data / "cifar-100-binary.tar.gz", "w:gz") as archive:
        for member, content in (("train.bin", records), ("fine_label_names.txt", names)):
            entry = tarfile.TarInfo(f"cifar-100-binary/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    loaded = datasets.fetch_cifar100()
    assert loaded.labels["class"].tolist() == fine.tolist()
    assert loaded.labels["class_name"][2] == "kind_99"
    red, green, blue = (int(value) for value in planes[4, :, 2 + 5, 2 + 27])
    assert loaded.X[4, 5 * 28 + 27] == (19595 * red + 38470 * green + 7471 * blue + 32768) // 65536
    assert files_under(data) == [data / "cifar-100-binary.tar.gz"]


@pytest.mark.data("image_segmentation.csv")
def test_image_segmentation_is_converted_from_openml(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    original = datasets.fetch_image_segmentation()
    _, cache = request.getfixturevalue("folders")
    classes = np.char.lower(original.labels["class_name"]).astype(object)
    answers = {"data": original.X, "target": classes}
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: SimpleNamespace(**answers))
    converted = datasets.fetch_image_segmentation()
    assert (cache / "image_segmentation.csv").is_file()
    assert np.array_equal(converted.X, original.X)
    assert np.array_equal(converted.labels["class_name"], original.labels["class_name"])
    shutil.rmtree(cache)
    answers["data"] = original.X[:, :18]
    with pytest.raises(DataNotFoundError, match=r"another table.*put it at"):
        datasets.fetch_image_segmentation()
    assert files_under(cache) == []


def idx(sizes: tuple[int, ...], values: bytes, kind: int = 8) -> bytes:
    head = bytes([0, 0, kind, len(sizes)]) + b"".join(size.to_bytes(4, "big") for size in sizes)
    # Without a fixed time two test workers that start in different seconds see different bytes, hence different tests.
    return gzip.compress(head + values, mtime=0)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (idx((2, 28, 28), bytes(783)), "783 values"),
        (idx((2, 28, 28), bytes(1568), kind=9), "first bytes"),
        (idx((2, 28, 28), bytes(1568))[:-9], "ended"),
        (b"<html>not found</html>", "gzip"),
        (b"", "first bytes"),
    ],
)
def test_a_damaged_image_file_is_named(folders: tuple[Path, Path], images: bytes, words: str) -> None:
    place = folders[0] / "mnist"
    place.mkdir()
    (place / "train-images-idx3-ubyte.gz").write_bytes(images)
    (place / "train-labels-idx1-ubyte.gz").write_bytes(idx((2,), bytes([4, 2])))
    with pytest.raises(FileFormatError, match=words) as caught:
        datasets.fetch_mnist()
    assert str(place / "train-images-idx3-ubyte.gz") in str(caught.value)
    (place / "train-images-idx3-ubyte.gz").write_bytes(idx((2, 28, 28), bytes(1568)))
    assert datasets.fetch_mnist().labels["class_name"].tolist() == ["4", "2"]


@pytest.mark.parametrize(
    ("name", "load", "text"),
    [
        ("synthetic_dataset.csv", datasets.load_synthetic_paper, "batch,celltype\n0,1\n"),
        ("synthetic_dataset.csv", datasets.load_synthetic_paper, ""),
        ("uci_adult_data.csv", datasets.fetch_adult, "id,age\n1,2,3\n"),
        ("image_segmentation.csv", datasets.fetch_image_segmentation, "class,hue.mean\nSKY,blue\n"),
        ("cifar-100-binary.tar.gz", datasets.fetch_cifar100, "not an archive"),
        ("cifar100_gray28_train.npz", datasets.fetch_cifar100, "not an archive"),
    ],
)
def test_a_foreign_file_is_named(folders: tuple[Path, Path], name: str, load: Callable[[], Dataset], text: str) -> None:
    (folders[0] / name).write_text(text)
    with pytest.raises(FileFormatError, match=name):
        load()
