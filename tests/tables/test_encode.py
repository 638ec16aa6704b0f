"""Tables in, matrices out: the same numbers from every kind of table, a sentence for what cannot be used."""

from __future__ import annotations

import datetime
import decimal
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.encode import encode, frame, is_table
from imapce.tables.learn import Encoding
from tables_of_kinds import KINDS, MEANS, MIXED, as_pandas, each_kind, refusal


@each_kind
def test_one_mixed_table_gives_one_matrix_whatever_holds_it(make: Any) -> None:
    encoded = encode(make(MIXED), missing="mean")
    size, count, ripe = MEANS[:3]
    expected = [
        [1.5, 1, 1, 0, 1],
        [2.5, 2, 0, 1, 0],
        [size, 3, 1, 0, 1],
        [4.0, 4, 1, 0.4, 0.6],
        [5.0, 5, ripe, 1, 0],
        [6.0, 6, 0, 0, 1],
    ]
    np.testing.assert_allclose(encoded.matrix, expected, rtol=1e-15)
    assert encoded.matrix.dtype == np.float64
    assert encoded.matrix.flags.c_contiguous
    assert encoded.encoding.kinds == ("number", "number", "boolean", "category")
    assert encoded.encoding.feature_names == ("size", "count", "ripe", "colour=blue", "colour=red")
    assert encoded.encoding.groups.tolist() == [0, 1, 2, 3, 3]
    np.testing.assert_allclose(encoded.encoding.fill, MEANS, rtol=1e-15)
    assert count == 3.5


def test_the_encodings_of_the_three_kinds_are_equal_and_cross_over() -> None:
    learned = [encode(make(MIXED), missing="mean").encoding for make in KINDS]
    assert learned[0] == learned[1] == learned[2]
    matrices = [encode(make(MIXED), missing="mean", encoding=learned[0]).matrix for make in KINDS]
    np.testing.assert_array_equal(matrices[0], matrices[1])
    np.testing.assert_array_equal(matrices[0], matrices[2])


@pytest.mark.parametrize(
    "colour",
    [
        pd.Series(["b", "a", "c"], dtype="category"),
        pd.Series(pd.Categorical(["b", "a", "c"], categories=["z", "c", "b", "a"], ordered=True)),
        pd.Series(["b", "a", "c"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        pl.Series(["b", "a", "c"], dtype=pl.Categorical),
        pl.Series(["b", "a", "c"], dtype=pl.Enum(["c", "z", "b", "a"])),
        pa.array(["b", "a", "c"]).dictionary_encode(),
        pa.chunked_array([pa.array(["b"]).dictionary_encode(), pa.array(["a", "c"]).dictionary_encode()]),
    ],
    ids=["pandas", "ordered", "pandas-arrow", "polars", "enum", "arrow", "two-dictionaries"],
)
def test_categorical_types_become_their_sorted_observed_categories(colour: Any) -> None:
    maker = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(type(colour).__module__.split(".")[0], pa.table)
    encoded = encode(maker({"colour": colour}))
    assert encoded.encoding.categories == (("a", "b", "c"),)
    assert encoded.matrix.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_integer_and_boolean_categories_keep_their_type() -> None:
    table = pd.DataFrame({"floor": pd.Categorical([3, 1, 3]), "own": pd.Categorical([True, False, True])})
    encoding = encode(table).encoding
    assert encoding.categories == ((1, 3), (False, True))
    plain = pd.DataFrame({"own": [False], "floor": [3]})
    assert encode(plain, encoding=encoding).matrix.tolist() == [[0, 1, 1, 0]]


def test_decimals_integers_of_any_width_and_half_floats_become_float64() -> None:
    table = pa.table(
        {
            "price": pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.50")]),
            "tiny": pa.array([1, 2], pa.uint8()),
            "huge": pa.array([2**60 + 1, 0], pa.int64()),
            "half": pa.array(np.array([0.5, 2.0], np.float16)),
        }
    )
    matrix = encode(table).matrix
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [[1.25, 1.0, 2.0**60, 0.5], [2.5, 2.0, 0.0, 2.0]]


@each_kind
def test_float32_stays_only_when_every_column_has_it(make: Any) -> None:
    small = np.array([1.5, 2.5], np.float32)
    assert encode(frame({"a": small, "b": small}, like=make({"a": [1]}))).matrix.dtype == np.float32
    assert (
        encode(frame({"a": small, "b": small * 1.0, "c": np.ones(2)}, like=make({"a": [1]}))).matrix.dtype == np.float64
    )


def test_new_rows_match_by_name_in_any_order() -> None:
    encoding = encode(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})).encoding
    for make in KINDS:
        assert encode(make({"b": [7.0], "a": [5.0]}), encoding=encoding).matrix.tolist() == [[5.0, 7.0]]
    assert encode(pd.DataFrame({"b": [7.0], "a": [5.0]}), encoding=encoding).matrix.tolist() == [[5.0, 7.0]]
    wide = pd.DataFrame({"z": [0.0], "b": [7.0], "a": [5.0]})
    assert encode(wide, encoding=encoding, extra="ignore").matrix.tolist() == [[5.0, 7.0]]
    text = refusal(pa.table({"b": [1.0], "c": [2.0], "d": [2.0]}), encoding=encoding)
    assert "lacks 'a'" in text
    assert "extra 'c', 'd'" in text


def test_new_rows_are_filled_with_the_learned_means() -> None:
    encoding = encode(pa.table(MIXED), missing="mean").encoding
    for make in KINDS:
        one_row = make({"size": [None], "count": [9], "ripe": [None], "colour": [None]})
        filled = encode(one_row, encoding=encoding, missing="mean").matrix
        np.testing.assert_allclose(filled, [[3.8, 9, 0.6, 0.4, 0.6]], rtol=1e-15)
    assert "NaN" in refusal(pd.DataFrame(MIXED)[:3].astype({"ripe": "boolean"}), encoding=encoding)


def test_new_rows_of_another_kind_are_refused_by_name() -> None:
    encoding = encode(pa.table(MIXED), missing="mean").encoding
    row: dict[str, list[Any]] = {"size": ["big"], "count": [1], "ripe": [7], "colour": ["green"]}
    text = refusal(pa.table(row), encoding=encoding)
    assert "'size' was learned as a number" in text
    assert "'ripe' was learned as a boolean" in text
    assert "'colour' has the unknown category 'green'" in text
    day = [datetime.date(2020, 1, 1)]
    assert "date32" in refusal(pa.table({**row, "size": [1.0], "ripe": [1], "colour": day}), encoding=encoding)


def test_every_refused_column_is_named_in_one_sentence() -> None:
    rows = 8
    table = pa.table(
        {
            "fine": [1.0] * rows,
            "day": [datetime.date(2020, 1, 1)] * rows,
            "clock": [datetime.time(1)] * rows,
            "wait": [datetime.timedelta(1)] * rows,
            "when": [datetime.datetime(2020, 1, 1)] * rows,
            "list": [[1]] * rows,
            "struct": [{"a": 1}] * rows,
            "raw": [b"a"] * rows,
            "note": [f"text {row}" for row in range(rows)],
            "void": pa.nulls(rows),
            "hole": [float("nan")] * rows,
            "days": pa.array([datetime.date(2020, 1, 1)] * rows).dictionary_encode(),
        }
    )
    text = refusal(table, name="rows")
    assert text.startswith("rows must")
    assert "'fine'" not in text
    for column in set(table.column_names) - {"fine"}:
        assert repr(column) in text
    assert "'note' is free text with 8 distinct values in 8 rows (drop it, or make it categorical)" in text
    assert "'void' has only missing values" in text


def test_pandas_objects_intervals_and_mixed_categories_are_refused() -> None:
    table = pd.DataFrame(
        {
            "thing": pd.Series([1, "a", 2.0], dtype=object),
            "bin": pd.cut(pd.Series([1, 2, 3]), 2),
            "mix": pd.Categorical([1, "a", 1]),
            "wave": [1j, 2j, 3j],
        }
    )
    text = refusal(table)
    assert "'thing' is object" in text
    assert "'bin' has categories of type category of interval" in text
    assert "'mix' has categories of more than one type" in text
    assert "'wave' is complex128" in text
    assert "'a' has only missing" in refusal(pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]}), missing="mean")


def test_text_is_a_category_up_to_fifty_values_and_below_half_of_the_rows() -> None:
    fifty = [f"v{row % 50:02}" for row in range(102)]
    assert encode(pa.table({"t": fifty})).matrix.shape == (102, 50)
    assert "51 distinct values in 104 rows" in refusal(pa.table({"t": [f"v{row % 51}" for row in range(104)]}))
    assert "2 distinct values in 4 rows" in refusal(pa.table({"t": ["a", "b", "a", "b"]}))
    assert encode(pa.table({"t": ["a", "b", "a", "b", "a"]})).matrix.shape == (5, 2)


@each_kind
def test_missing_values_are_counted_by_column(make: Any) -> None:
    text = refusal(make(MIXED))
    assert "NaN" in text
    assert "'size' has 1, 'ripe' has 1, 'colour' has 1" in text
    assert 'fill them with missing="mean"' in text


@each_kind
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_infinite_values_are_refused_by_column(make: Any, missing: str) -> None:
    text = refusal(make({"a": [1.0, -np.inf], "b": [np.inf, np.inf], "c": [1.0, 2.0]}), missing=missing)
    assert "inf" in text
    assert "'a' has 1, 'b' has 2" in text
    assert "'c'" not in text


def test_the_mean_of_huge_values_is_finite() -> None:
    assert encode(pa.table({"a": [1.5e308, 1.5e308]})).encoding.fill == (1.5e308,)


def test_tables_without_rows_columns_or_distinct_names_are_refused() -> None:
    assert "0 rows and 1 column" in refusal(pa.table({"a": pa.array([], pa.float64())}))
    assert "0 columns" in refusal(pd.DataFrame(index=range(3)))
    assert "'a' more than once" in refusal(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    assert "'1' more than once" in refusal(pd.DataFrame([[1.0, 2.0]], columns=[1, "1"]))
    clash = pa.table({"a": ["b"] * 5, "a=b": [1.0] * 5})
    assert "'a=b'" in refusal(clash)
    assert "missing must be" in refusal(clash, missing="drop")
    assert "extra must be" in refusal(clash, extra="drop")


def test_pandas_integer_names_become_text() -> None:
    for values in (np.ones((2, 3)), np.ones((2, 3), dtype=int)):
        assert encode(pd.DataFrame(values)).encoding.columns == ("0", "1", "2")


def test_what_is_a_table() -> None:
    for make in KINDS:
        assert is_table(make({"a": [1]}))
    for other in (np.ones((2, 2)), [[1]], {"a": [1]}, pd.Series([1]), None):
        assert not is_table(other)
    for call in (is_table, encode):
        with pytest.raises(InvalidTypeError, match=re.escape(".collect()")):
            call(pl.LazyFrame({"a": [1]}))
    with pytest.raises(InvalidTypeError, match="ndarray"):
        encode(np.ones((2, 2)))


def test_the_input_is_never_changed_and_shares_no_memory() -> None:
    floats = pd.DataFrame({"a": [1.0, np.nan], "b": [3.0, 4.0]})
    mixed = as_pandas(MIXED)
    for table in (floats, mixed):
        before = table.copy(deep=True)
        matrix = encode(table, missing="mean").matrix
        matrix[:] = -1.0
        pd.testing.assert_frame_equal(table, before)
    arrow = pa.table({"a": np.array([1.0, 2.0])})
    encode(arrow).matrix[:] = -1.0
    assert arrow["a"].to_pylist() == [1.0, 2.0]


def test_columns_of_a_name_or_position() -> None:
    encoding = encode(pa.table(MIXED), missing="mean").encoding
    assert encoding.columns_of("colour").tolist() == [3, 4]
    assert encoding.columns_of(np.int64(3)).tolist() == [3, 4]
    assert encoding.columns_of(0).tolist() == [0]
    with pytest.raises(InvalidValueError, match="did you mean 'colour'"):
        encoding.columns_of("color")
    for bad in (-1, 4):
        with pytest.raises(InvalidValueError, match="from 0 to 3"):
            encoding.columns_of(bad)
    for wrong in (True, 1.0):
        with pytest.raises(InvalidTypeError, match="name or a position"):
            encoding.columns_of(wrong)  # type: ignore[arg-type]


columns_of_numbers = st.integers(1, 6).flatmap(
    lambda rows: st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=4),
        st.one_of(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=rows, max_size=rows),
            st.lists(st.integers(-(2**53), 2**53), min_size=rows, max_size=rows),
            st.lists(st.booleans(), min_size=rows, max_size=rows),
        ),
        min_size=1,
        max_size=4,
    )
)


@settings(max_examples=60, deadline=None)
@given(columns_of_numbers, st.randoms(use_true_random=False))
def test_numbers_come_through_exactly(columns: dict[str, list[Any]], random: Any) -> None:
    order = list(columns)
    random.shuffle(order)
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        learned = encode(make(columns))
        assert Encoding.from_json(json.loads(json.dumps(learned.encoding.to_json()))) == learned.encoding
        shuffled = encode(make({name: columns[name] for name in order}), encoding=learned.encoding)
        for matrix in (learned.matrix, shuffled.matrix):
            for name, values in columns.items():
                (position,) = learned.encoding.columns_of(name)
                assert matrix[:, position].tolist() == values


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "ç", ""]), min_size=1, max_size=12))
def test_categories_come_through_exactly(values: list[str]) -> None:
    for table in (
        pd.DataFrame({"c": pd.Categorical(values)}),
        pl.DataFrame({"c": pl.Series(values, dtype=pl.Categorical)}),
        pa.table({"c": pa.array(values).dictionary_encode()}),
    ):
        encoded = encode(table)
        categories = encoded.encoding.categories[0]
        assert [categories[position] for position in encoded.matrix.argmax(axis=1)] == values
        assert encoded.matrix.sum(axis=1).tolist() == [1.0] * len(values)


def test_a_number_that_is_the_name_of_another_column_is_refused() -> None:
    encoding = encode(pd.DataFrame(np.eye(3), columns=[2, 1, 0])).encoding
    assert encoding.columns_of(1).tolist() == [1]
    assert encoding.columns_of("2").tolist() == [0]
    with pytest.raises(InvalidValueError, match="is unclear, since another column is named '2'"):
        encoding.columns_of(2)
