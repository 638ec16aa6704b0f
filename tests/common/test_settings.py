"""The settings: one place, a reason for each, the page that shows them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pytest

from imapce import IMAPCE, Samples
from imapce.common.settings import SETTINGS, as_page

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
STAGES = [getattr(SETTINGS, stage.name) for stage in fields(SETTINGS)]


def test_the_page_shows_the_records_as_they_are() -> None:
    """To renew it: python -c "from imapce.common.settings import as_page; print(as_page())", below its first lines."""
    assert PAGE.read_text(encoding="utf-8").endswith(as_page())


@pytest.mark.parametrize("record", STAGES, ids=lambda record: type(record).__name__)
def test_every_setting_has_a_reason_and_counts_tables_where_it_was_measured(record: object) -> None:
    for setting in fields(record):  # type: ignore[arg-type]
        assert len(setting.metadata["why"].split()) >= 3, setting.name
        assert setting.metadata["measured"] or not setting.metadata["tables"], setting.name


def test_a_setting_is_changed_by_another_record_and_never_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        SETTINGS.clusters.exponent = 0.5  # type: ignore[misc]
    assert replace(SETTINGS.clusters, exponent=0.5).exponent == 0.5
    assert SETTINGS.clusters.exponent == 0.3
    assert as_page(replace(SETTINGS, clusters=replace(SETTINGS.clusters, exponent=0.5))) != as_page()


def test_a_model_with_other_records_goes_by_them_from_the_first_row_on() -> None:
    X = np.random.default_rng(0).normal(size=(500, 4))
    X[7, 2] = 60.0

    class Lenient(IMAPCE):
        settings = replace(SETTINGS, outliers=replace(SETTINGS.outliers, outer=(100.0, 2.5)))

    assert IMAPCE().fit(X).outliers_.tolist() == [7]
    assert Lenient().fit(X).outliers_.tolist() == []
    told = [kind().fit(X[8:], prior=Samples(X)).stop_reason_ for kind in (IMAPCE, Lenient)]
    assert ["1 of 500 background rows is a gross outlier" in words for words in told] == [True, False]
