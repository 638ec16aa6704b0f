"""Data from elsewhere: downloaded once, checked, read in place; damaged and foreign files are named."""

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
from imapce.datasets.dataset import Dataset
from imapce.datasets.downloads import DataFile
from imapce.errors import DataNotFoundError, FileFormatError

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
