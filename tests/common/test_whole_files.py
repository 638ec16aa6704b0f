"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from imapce.common.whole_files import folder_target, whole_file, whole_folder, writable_target
from imapce.errors import InvalidValueError


def test_the_file_appears_when_the_block_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    with whole_file(path) as stream:
        stream.write(b"all")
        assert not path.exists()
    assert path.read_bytes() == b"all"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with whole_file(path) as stream:
            stream.write(b"half")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        write_and_fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"^path must name a file, got the folder"):
        writable_target(tmp_path)
    with pytest.raises(InvalidValueError, match=r"^path must lie in an existing folder"):
        writable_target(tmp_path / "missing" / "notes")


def test_a_place_lost_while_writing_is_one_sentence_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "notes"

    def write_while_the_place_is_taken() -> None:
        with whole_file(path) as stream:
            stream.write(b"all")
            path.mkdir()

    with pytest.raises(InvalidValueError, match=r"^path must be a place that can be written"):
        write_while_the_place_is_taken()
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_too_long_for_the_disk_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="path must be a place that can be written"):
        writable_target(tmp_path / ("x" * 300))


def test_a_folder_takes_the_place_of_an_earlier_one_when_the_block_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "results"
    for text in ("first", "second"):
        with whole_folder(path, {"notes"}) as folder:
            (folder / "notes").write_text(text)
        assert (path / "notes").read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_old_folder_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.mkdir()
    (path / "notes").write_text("old")

    def write_and_fail() -> None:
        with whole_folder(path, {"notes"}) as folder:
            (folder / "notes").write_text("half")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        write_and_fail()
    assert (path / "notes").read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "diary").touch()
    with pytest.raises(InvalidValueError, match="holds 'diary'"):
        folder_target(tmp_path, {"notes"})
    with pytest.raises(InvalidValueError, match="must name a folder"):
        folder_target(tmp_path / "diary", {"notes"})
    with pytest.raises(InvalidValueError, match="existing folder"):
        folder_target(tmp_path / "no" / "results", {"notes"})
    assert folder_target(tmp_path / "new", {"notes"}) == tmp_path.resolve() / "new"
