"""`imapce demo`: scores in the terminal, figures and a report in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import refusal, succeed
from imapce.cli.tour import run_tour


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


def test_a_tour_is_not_said_to_be_done_while_its_figures_are_written(tmp_path: Path) -> None:
    told: list[float] = []

    def tell(words: str, share: float | None) -> None:
        assert share is not None
        told.append(share)
        if words.startswith("writing"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tour(str(tmp_path / "tour"), tell=tell)
    assert told == sorted(told)
    assert told[-1] < 0.5
    assert not (tmp_path / "tour").exists()
