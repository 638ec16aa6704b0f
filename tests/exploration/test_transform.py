"""Amounts whose tails are cut into clusters as they are: the note, the log scale, all in the units of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import imapce
from imapce import IMAPCE, Attributes, Exploration, Samples
from imapce.errors import InvalidValueError

LOOK = "strongly skewed: 'rent', 'food', 'travel', 'savings'; transform=\"log\" looks at them on a log scale."


def amounts() -> tuple[pd.DataFrame, np.ndarray]:
    """Three kinds of households by what they spend, each log-normal: as they are, one group with a long tail."""
    rng = np.random.default_rng(1)
    kind = rng.choice(3, 300, p=[0.4, 0.35, 0.25])
    centres = np.array([[3.0, 6.0, 4.0, 5.0], [4.8, 4.2, 6.0, 5.0], [6.0, 5.8, 3.5, 7.0]])
    spent = np.exp(centres[kind] + rng.normal(scale=0.9, size=(300, 4))).round(2)
    return pd.DataFrame(spent, columns=["rent", "food", "travel", "savings"]), kind


@pytest.fixture(scope="module")
def explored() -> Exploration:
    return Exploration(amounts()[0], transform="log", random_state=0).run()


def test_skewed_amounts_are_cut_into_other_clusters_and_a_note_says_why(explored):
    """As they are, tails are cut into clusters of their own: more than the three groups, which they do not follow."""
    exploration = Exploration(amounts()[0], random_state=0).run()
    kind = amounts()[1]
    assert len(exploration.clusters_) > 3
    assert adjusted_rand_score(kind, exploration.labels_) < adjusted_rand_score(kind, explored.labels_) - 0.2
    assert exploration.notes_ == [LOOK]


def test_on_a_log_scale_the_groups_are_there(explored):
    assert len(explored.clusters_) == 3
    assert adjusted_rand_score(amounts()[1], explored.labels_) > 0.8
    assert explored.notes_ == ["'rent', 'food', 'travel', 'savings' are looked at on a log scale."]
    by_rank = Exploration(amounts()[0], transform="rank", random_state=0).run()
    assert adjusted_rand_score(amounts()[1], by_rank.labels_) > 0.8


def test_an_array_and_a_table_that_was_read_are_the_same(explored):
    table = amounts()[0]
    read = imapce.read(table, transform="log")
    for X, transform in ((table.to_numpy(), "log"), (read, None), (imapce.read(table), "log")):
        other = Exploration(X, transform=transform, random_state=0).run()
        assert (other.labels_ == explored.labels_).all()
    pd.testing.assert_frame_equal(read.native, table)
    assert Exploration(imapce.read(table), transform="log").notes_ == explored.notes_


def test_what_is_shown_is_in_the_units_of_the_table(explored):
    table = amounts()[0]
    for cluster in explored.clusters_:
        inside = np.isin(np.arange(len(table)), cluster.rows)
        for trait in explored.profile(inside).traits:
            assert trait.inside.mean == pytest.approx(table[trait.column][inside].mean())
            assert trait.outside.median == pytest.approx(table[trait.column][~inside].median())
    description = explored.description()
    for number, values in zip(description.numbers, description.values, strict=True):
        means = table[explored.labels_ == number].mean()
        assert values == pytest.approx([means[name] for name in description.features])
    assert explored.found.data.column("rent").values == pytest.approx(table["rent"])
    array = Exploration(table.to_numpy(), transform="log", random_state=0)
    assert array.found.data.column("x1").values == pytest.approx(table["food"])


@pytest.mark.parametrize("transform", ["log", {"rent": "rank", "savings": "log"}])
def test_a_session_keeps_the_scales(transform, tmp_path):
    table = amounts()[0]
    exploration = Exploration(table, transform=transform, random_state=0)
    exploration.accept(mask=np.arange(40))
    exploration.save(tmp_path / "session.imapce")
    again = Exploration.load(tmp_path / "session.imapce", table)
    assert again.found.data.reader.transform == exploration.found.data.reader.transform
    assert (again.found.data.reader.read(table) == exploration.found.data.reader.read(table)).all()
    assert again.record() == exploration.record()
    with pytest.raises(InvalidValueError, match="must be the data of the session"):
        Exploration.load(tmp_path / "session.imapce", table * 2 + 1)


def test_a_background_goes_through_the_scale_once(tmp_path):
    table = amounts()[0]
    for background in (table[::2], table[::2].to_numpy()):
        exploration = Exploration(table, prior=Samples(background), transform="log", random_state=0)
        reader = exploration.found.data.reader
        (stored,) = exploration.record().priors
        assert np.asarray(stored.background) == pytest.approx(reader.read(table[::2]))
        exploration.save(tmp_path / "session.imapce")
        again = Exploration.load(tmp_path / "session.imapce", table, autosave=False)
        (kept,) = again.found.record.priors
        matrix = kept.background_matrix(again.found.data.reader, means=np.zeros(4), missing="error")
        assert matrix == pytest.approx(reader.read(table[::2]))


def test_a_session_without_scales_is_written_as_it_was(tmp_path):
    exploration = Exploration(amounts()[0], random_state=0)
    assert exploration.record().transform is None
    assert exploration.record().data.transform == ()


def test_a_known_column_is_known_on_its_scale():
    exploration = Exploration(amounts()[0], prior=Attributes(["rent"]), transform="log", random_state=0)
    step = exploration.propose()
    assert step.views[0].embedding.shape == (300, 2)
    model = IMAPCE(random_state=0).fit(imapce.read(amounts()[0], transform="log"), prior=Attributes(["rent"]))
    assert model.reader_.transform["rent"] == "log"
