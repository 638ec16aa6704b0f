"""The memory there is: the machine's, or the smaller one that a container is granted."""

from __future__ import annotations

from pathlib import Path

import pytest

from imapce.common import streams


@pytest.mark.parametrize(("granted", "expected"), [("1000000\n", 1_000_000), ("max\n", None), (None, None)])
def test_the_limit_of_a_container_counts_where_there_is_one(
    granted: str | None, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LIMIT_FILES", ())
    machine = streams.memory_bytes()
    if granted is not None:
        (tmp_path / "memory.max").write_text(granted)
    monkeypatch.setattr(streams, "LIMIT_FILES", (str(tmp_path / "memory.max"),))
    assert streams.memory_bytes() == (machine if expected is None else expected)


def test_a_system_that_does_not_tell_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LIMIT_FILES", ())
    monkeypatch.delattr(streams.os, "sysconf")
    assert streams.memory_bytes() is None
