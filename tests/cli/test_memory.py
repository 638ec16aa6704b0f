"""The memory there is: the machine's, or the smaller one that a container is granted."""

from __future__ import annotations

from pathlib import Path

import pytest

from imapce.cli import on_disk


@pytest.mark.parametrize(("granted", "expected"), [("1000000\n", 1_000_000), ("max\n", None), (None, None)])
def test_the_limit_of_a_container_counts_where_there_is_one(
    granted: str | None, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_disk, "LIMIT_FILES", ())
    machine = on_disk.memory_bytes()
    if granted is not None:
        (tmp_path / "memory.max").write_text(granted)
    monkeypatch.setattr(on_disk, "LIMIT_FILES", (str(tmp_path / "memory.max"),))
    assert on_disk.memory_bytes() == (machine if expected is None else expected)


def test_a_system_that_does_not_tell_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_disk, "LIMIT_FILES", ())
    monkeypatch.delattr(on_disk.os, "sysconf")
    assert on_disk.memory_bytes() is None
