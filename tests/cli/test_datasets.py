"""`imapce datasets`: the catalogue, told without a download."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import succeed


def test_datasets_lists_without_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAPCE_DATA", str(tmp_path))
    monkeypatch.setenv("IMAPCE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "adult.data.gz").touch()
    entries = {entry["name"]: entry for entry in json.loads(succeed("datasets", "--json"))["datasets"]}
    assert entries["digits"]["on_disk"]
    assert entries["adult_full"]["on_disk"]
    assert not entries["mnist"]["on_disk"]
    told = succeed("datasets")
    assert all(name in told for name in entries)
    assert not (tmp_path / "cache").exists()
