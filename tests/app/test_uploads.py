"""Files that are sent to the page: read where they are whole, refused in a sentence where they are not."""

from __future__ import annotations

import http.client
import io
import pickle
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import uvicorn

from imapce.app import tabs
from imapce.app.server import Guard, application, cookie_of
from imapce.app.tabs import Tabs
from imapce.errors import FileFormatError, InvalidValueError
from served import Server, click, opened, work

LIMIT = 20_000


class Explosive:
    """Unpickling this would write a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def hostile(folder: Path) -> dict[str, bytes]:
    bomb = np.array([Explosive(folder / "exploded")], dtype=object)
    npy, npz, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(npy, bomb, allow_pickle=True)
    np.savez(npz, X=bomb)
    pa.parquet.write_table(pa.table({"x": np.arange(500.0)}), parquet)
    swollen = io.BytesIO()
    with zipfile.ZipFile(swollen, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\x93NUMPY" + b"\0" * 5_000_000)
    return {
        "pickled.npy": npy.getvalue(),
        "pickled.npz": npz.getvalue(),
        "plain.pkl": pickle.dumps(bomb),
        "pickle.csv": pickle.dumps(Explosive(folder / "exploded")),
        "truncated.parquet": parquet.getvalue()[:-40],
        "mislabelled.parquet": b"x,y\n1,2\n3,4\n",
        "mislabelled.xlsx": b"not a sheet at all",
        "picture.csv": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        "empty.csv": b"",
        "swollen.npz": swollen.getvalue(),
    }


@pytest.mark.parametrize("name", list(hostile(Path("."))))
def test_a_file_that_is_not_what_it_says_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(hostile(tmp_path)[name])
    with pytest.raises(FileFormatError) as refused:
        tabs.inspect_file(path, LIMIT)
    assert name in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "exploded").exists()


def test_columns_get_a_role_by_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    lines = [f"{i},{i * 0.5},{['a', 'b'][i % 2]},{['x', 'y', 'z'][i % 3]},k{i}" for i in range(60)]
    path.write_text("row_id,size,shape,species,key\n" + "\n".join(lines))
    roles = {one["name"]: one["role"] for one in tabs.inspect_file(path)[1]}
    assert roles == {"row_id": "ignored", "size": "feature", "shape": "feature", "species": "label", "key": "ignored"}


def test_roles_become_features_priors_and_labels() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=50), "b": rng.normal(size=50), "c": rng.normal(size=50), "kind": ["x"] * 50})
    study = tabs.open_file("t.csv", table, {"a": "feature", "b": "feature", "c": "known", "kind": "label"})
    assert study.exploration.feature_names == ["a", "b", "c"]
    assert study.known_by_column == {"c": "explained away"}
    assert study.labels == ("kind",)
    with pytest.raises(InvalidValueError, match="two columns must be features"):
        tabs.open_file("t.csv", table, {"a": "feature", "b": "known"})
    with pytest.raises(InvalidValueError, match="cannot be a feature"):
        tabs.open_file("t.csv", table, {"a": "feature", "b": "feature", "kind": "feature"})
    with pytest.raises(InvalidValueError, match="role of a column"):
        tabs.open_file("t.csv", table, {"a": "magic"})


@pytest.fixture
def desk(tmp_path: Path) -> Tabs:
    return Tabs(None, tmp_path, most_bytes=LIMIT)


@pytest.fixture
def port(desk: Tabs) -> Iterator[int]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    number = listener.getsockname()[1]
    guarded = Guard(application(desk), "secret", [f"127.0.0.1:{number}"])
    server = uvicorn.Server(uvicorn.Config(guarded, log_level="error", ws="websockets-sansio"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield number
    server.should_exit = True
    thread.join(20)


def send(port: int, name: str, body: bytes) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Cookie": f"imapce_{port}={cookie_of('secret')}", "Origin": f"http://127.0.0.1:{port}"}
    connection.request("POST", f"/upload?name={name}", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_file_that_is_too_large_is_refused_and_not_kept(port: int, desk: Tabs, tmp_path: Path) -> None:
    status, told = send(port, "large.csv", b"x" * (LIMIT + 1))
    assert status == 413
    assert "larger than the" in told
    assert not list(tmp_path.rglob("large.csv"))
    assert send(port, "small.csv", b"x,y\n1,2\n")[0] == 200


@pytest.mark.parametrize("name", ["../../outside.csv", "%2e%2e%2foutside.csv", "..\\outside.csv", "/etc/outside.csv"])
def test_no_name_leads_out_of_the_folder(port: int, tmp_path: Path, name: str) -> None:
    assert send(port, name, b"x,y\n1,2\n")[0] == 200
    (kept,) = tmp_path.rglob("*outside.csv")
    assert tmp_path in kept.resolve().parents
    assert not (tmp_path.parent / "outside.csv").exists()


def test_only_what_was_sent_here_is_opened(desk: Tabs) -> None:
    tab = desk.tab(None, "me")
    for named in ("/etc/passwd", "../pyproject.toml", ""):
        assert "one that was sent to this page" in tab.handle({"type": "inspect", "upload": named, "id": 1})[0]["error"]
    assert "one of those offered" in tab.handle({"type": "open", "dataset": "/etc/passwd", "id": 2})[0]["error"]


def test_the_page_says_why_a_file_is_refused_and_opens_one_that_is_whole(
    start: Server, somebody: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    group = np.arange(240) % 2
    bad, good = tmp_path / "pickled.npy", tmp_path / "good.csv"
    bad.write_bytes(hostile(tmp_path)["pickled.npy"])
    rows = zip(rng.normal(size=240) + 7 * group, rng.normal(size=240), rng.normal(size=240), group, strict=True)
    good.write_text("a,b,c,class\n" + "\n".join(",".join(map(str, row)) for row in rows))
    page, watched = opened(somebody(), start)
    with work(page):
        page.set_input_files("#imapce-file", bad)
    assert "pickled.npy" in page.locator(".trouble").inner_text()
    with work(page):
        page.set_input_files("#imapce-file", good)
    assert page.get_by_label("Role of class").input_value() == "label"
    page.get_by_label("Role of c", exact=True).select_option("known")
    click(page, "Explore")
    click(page, "Next view")
    assert page.locator(".title h2").inner_text() == "Step 1"
    assert page.locator(".known [data-came] b").all_text_contents() == ["c"]
    watched.nothing_wrong()
