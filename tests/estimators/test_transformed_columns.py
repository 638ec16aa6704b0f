"""A model of columns on other scales: new rows, files, what comes back in the units of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import imapce
from imapce import IMAPCE, Given, Labels, load_model
from imapce.errors import InvalidTypeError


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 2
    return pd.DataFrame(
        {
            "paid": np.exp(2.0 * kind + rng.normal(size=n)),
            "owed": np.where(rng.random(n) < 0.2, 0.0, np.exp(3.0 + rng.normal(scale=1.3, size=n))),
            "age": rng.normal(40.0, 9.0, n),
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
        }
    )


TRANSFORM = {"paid": "log", "owed": "rank"}


def test_a_model_is_that_of_columns_written_on_the_scale():
    frame = table()
    read = imapce.read(frame, transform=TRANSFORM)
    model = IMAPCE(random_state=0).fit(read)
    by_hand = frame.assign(**{name: scale.to_scale(frame[name].to_numpy()) for name, scale in read.scales.items()})
    other = IMAPCE(random_state=0).fit(by_hand)
    assert model.components_ == pytest.approx(other.components_, abs=1e-9)
    assert model.transform(frame) == pytest.approx(other.transform(by_hand), abs=1e-9)
    assert model.notes_ == ["'paid' is looked at on a log scale.", "'owed' is looked at by rank."]


@pytest.mark.parametrize("made", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "arrow"])
def test_new_rows_and_the_file_of_a_model(made, tmp_path):
    frame = made(table())
    model = IMAPCE(random_state=0).fit(imapce.read(frame, transform=TRANSFORM))
    model.save(tmp_path / "model.imapce")
    again = load_model(tmp_path / "model.imapce")
    assert again.reader_ == model.reader_
    rows = table(250)[200:]
    new = made(rows.assign(paid=50 * rows["paid"], owed=-3 * rows["owed"]))
    assert (again.transform(new) == model.transform(new)).all()
    assert np.isfinite(again.transform(new)).all()


def test_what_comes_back_is_in_the_units_of_the_table():
    frame = table()[["paid", "owed", "age"]]
    read = imapce.read(frame, transform=TRANSFORM)
    full = IMAPCE(3, alpha=0.0, mu=0.0, outliers="keep").fit(read)
    assert full.inverse_transform(full.transform(frame)) == pytest.approx(frame.to_numpy(), rel=1e-6, abs=1e-6)
    given = Given().fit(read)
    assert given.inverse_transform(given.transform(frame)) == pytest.approx(frame.to_numpy(), rel=1e-6, abs=1e-6)
    by_name = given.reader_.read(frame)
    assert (given.reader_.read(frame.to_numpy()) == by_name).all()


def test_rows_given_the_known_meet_on_the_scale():
    frame = table()[["paid", "owed", "age"]]
    run = np.arange(len(frame)) % 2
    model = Given(Labels(run)).fit(imapce.read(frame, transform={"paid": "log"}))
    back = pd.DataFrame(model.inverse_transform(model.transform(frame, labels=run)), columns=frame.columns)
    before = frame["paid"][run == 1].median() / frame["paid"][run == 0].median()
    after = back["paid"][run == 1].median() / back["paid"][run == 0].median()
    assert before > 5
    assert after == pytest.approx(1.0, abs=0.3)
    assert (back["paid"] > 0).mean() > 0.95


def test_an_array_that_is_read_has_no_names_to_transform(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((4, 2)))
    with pytest.raises(InvalidTypeError, match="transform needs columns with names"):
        imapce.read(tmp_path / "rows.npy", transform="log")
