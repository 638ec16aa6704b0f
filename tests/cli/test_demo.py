"""`imapce demo`: scores in the terminal, figures and a report in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import refusal, succeed


def test_demo_prints_scores_and_writes_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAPCE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("IMAPCE_CACHE", str(tmp_path / "none"))
    out = tmp_path / "tour"
    told = succeed("demo", "--out", out)
    assert "mixing" in told
    assert "the zeros" in told
    names = sorted(path.name for path in out.iterdir())
    kinds = ("comparison", "loadings", "path")
    assert names == sorted(
        [*(f"{case}-{kind}.png" for case in ("synthetic", "digits") for kind in kinds), "report.html"]
    )
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 6
    assert 'src="http' not in page
    blocked = tmp_path / "file"
    blocked.touch()
    assert "must name a folder" in refusal("demo", "--out", blocked)
    assert "existing folder" in refusal("demo", "--out", tmp_path / "absent" / "tour")
