"""Models on disk: every bit comes back, the same model is the same file, and nothing else is ever read."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from helpers import grouped
from imapce import IMAPCE, Attributes, ImapceError, load_model
from imapce.common.archive import read_archive, write_archive
from imapce.errors import FileFormatError, InvalidValueError

DATA = grouped(60)
NAMES = [f"c{i}" for i in range(8)]
TEXT = np.array(["red", "grün", "blue"], dtype=object)[DATA.kind]
INPUTS: dict[str, Callable[[], Any]] = {
    "array": lambda: DATA.X,
    "float32": lambda: DATA.X.astype(np.float32),
    "sparse": lambda: sparse.csr_array(DATA.X),
    "pandas": lambda: pd.DataFrame(DATA.X, columns=NAMES),
    "pandas with categories": lambda: pd.DataFrame(DATA.X, columns=NAMES).assign(colour=pd.Categorical(TEXT)),
    "pandas with booleans": lambda: pd.DataFrame(DATA.X, columns=NAMES).assign(flag=DATA.batch == 1),
    "polars": lambda: pl.DataFrame({"colour": list(TEXT), **{n: DATA.X[:, i] for i, n in enumerate(NAMES)}}),
    "arrow": lambda: pa.table({"colour": list(TEXT), **{n: DATA.X[:, i] for i, n in enumerate(NAMES)}}),
}


def fitted(data: Any = None, **changes: Any) -> IMAPCE:
    options: dict[str, Any] = {"mu": 20.0, "n_starts": 5, "random_state": 0} | changes
    return IMAPCE(**options).fit(DATA.X if data is None else data, prior=Attributes([0]))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "view.imapce"
    fitted().save(path)
    return path


def refused(path: Path, *parts: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        load_model(path)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize("kind", INPUTS)
def test_a_saved_model_comes_back_to_the_bit(kind: str, tmp_path: Path) -> None:
    data = INPUTS[kind]()
    model = fitted(data)
    model.save(tmp_path / "view.imapce")
    again = load_model(tmp_path / "view.imapce")
    assert again.transform(data).tobytes() == model.transform(data).tobytes()
    assert again.get_params() == model.get_params()
    assert sorted(vars(again)) == sorted(vars(model))
    for name in ("mean_", "scale_", "components_", "axis_correlation_", "explained_variance_ratio_"):
        assert getattr(again, name).tobytes() == getattr(model, name).tobytes(), name
    for name in (
        *("alpha_", "mu_", "objective_", "kurtosis_", "n_iter_", "n_evaluations_", "stop_reason_", "n_features_in_"),
        *("encoded_feature_names_", "reader_", "optima_", "path_", "trace_"),
    ):
        assert getattr(again, name) == getattr(model, name), name
    assert np.array_equal(again.trace_.objectives, model.trace_.objectives, equal_nan=True)
    assert (again.trace_.evaluations, again.trace_.outcomes) == (model.trace_.evaluations, model.trace_.outcomes)
    for one, other in zip(again.optima_, model.optima_, strict=True):
        assert np.array_equal(one.components, other.components)
        assert (one.objective, one.kurtosis, one.starts) == (other.objective, other.kurtosis, other.starts)
    if hasattr(model, "feature_names_in_"):
        assert list(again.feature_names_in_) == list(model.feature_names_in_)
    assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())
    assert again.loadings().equals(model.loadings())


def test_a_loaded_model_can_be_saved_again_as_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    load_model(saved).save(tmp_path / "again.imapce")
    assert (tmp_path / "again.imapce").read_bytes() == saved.read_bytes()


def test_the_same_model_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    fitted().save(tmp_path / "other-name.bin")
    assert (tmp_path / "other-name.bin").read_bytes() == saved.read_bytes()


def test_parameters_that_are_not_plain_are_saved_as_what_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "view.imapce"
    fitted(
        random_state=np.random.RandomState(0), verbose=lambda words, share: None, n_starts=np.int64(3), mu=np.float32(2)
    ).save(path)
    parameters = load_model(path).get_params()
    assert parameters["random_state"] is None
    assert parameters["verbose"] is True
    assert parameters["n_starts"] == 3
    assert parameters["mu"] == 2.0


def test_a_file_cut_short_anywhere_is_refused(saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    path = tmp_path / "cut.imapce"
    for length in range(0, len(content), 10):
        path.write_bytes(content[:length])
        refused(path)


def test_a_file_with_a_flipped_byte_is_refused_or_reads_as_it_was(saved: Path, tmp_path: Path) -> None:
    """A byte that no reader looks at (a date, say) may change; what is read may not."""
    content = saved.read_bytes()
    expected = load_model(saved).transform(DATA.X)
    path = tmp_path / "flipped.imapce"
    survived = 0
    for position in range(0, len(content), 37):
        changed = bytearray(content)
        changed[position] ^= 0x55
        path.write_bytes(changed)
        try:
            model = load_model(path)
        except FileFormatError:
            continue
        survived += 1
        assert np.array_equal(model.transform(DATA.X), expected)
    assert survived < len(content) / 37 / 2


# --- hostile files ----------------------------------------------------------------------------------------------------


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(entries.pop("header.json")), entries


def rebuilt(path: Path, header: Any, entries: dict[str, bytes]) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", text)
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


class Trap:
    """An object whose unpickling would be noticed."""

    sprung = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (setattr, (Trap, "sprung", True))


def test_an_honest_rebuild_is_read(saved: Path, tmp_path: Path) -> None:
    """The changes below are refused for what they change, not for having been rebuilt."""
    header, entries = parts_of(saved)
    assert np.array_equal(
        load_model(rebuilt(tmp_path / "m", header, entries)).components_, load_model(saved).components_
    )


ARRAY_CHANGES: dict[str, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    "a pickled object": lambda e: e | {"mean.npy": npy(np.array([Trap()] * 8, dtype=object), allow_pickle=True)},
    "an extra pickled object": lambda e: e | {"more.npy": npy(np.array([Trap()], dtype=object), allow_pickle=True)},
    "an extra array": lambda e: e | {"more.npy": npy(np.zeros(3))},
    "an entry that is no array": lambda e: e | {"readme.txt": b"hello"},
    "an npz inside": lambda e: e | {"mean.npy": b"PK\x03\x04" + b"\0" * 30},
    "a path that climbs": lambda e: e | {"../../evil.npy": npy(np.zeros(3))},
    "an absolute path": lambda e: e | {"/tmp/evil.npy": npy(np.zeros(3))},
    "a Windows path": lambda e: e | {"..\\evil.npy": npy(np.zeros(3))},
    "NaN": lambda e: e | {"mean.npy": npy(np.full(8, np.nan))},
    "infinity": lambda e: e | {"scale.npy": npy(np.full(8, np.inf))},
    "text": lambda e: e | {"mean.npy": npy(np.array(["a"] * 8))},
    "complex numbers": lambda e: e | {"mean.npy": npy(np.zeros(8, dtype=complex))},
    "dates": lambda e: e | {"mean.npy": npy(np.zeros(8, dtype="datetime64[D]"))},
    "records": lambda e: e | {"mean.npy": npy(np.zeros(8, dtype=[("a", float)]))},
    "a short mean": lambda e: e | {"mean.npy": npy(np.zeros(7))},
    "a square scale": lambda e: e | {"scale.npy": npy(np.ones((8, 8)))},
    "flat components": lambda e: e | {"components.npy": npy(np.zeros((2, 8)))},
    "no components": lambda e: e | {"components.npy": npy(np.zeros((0, 2, 8)))},
    "a missing mean": lambda e: {name: content for name, content in e.items() if name != "mean.npy"},
    "a trace of another shape": lambda e: e | {"trace_objectives.npy": npy(np.zeros((1, 1)))},
    "an array claim without bytes": lambda e: e | {"mean.npy": npy(np.zeros(8))[:-8]},
    "no bytes": lambda e: e | {"mean.npy": b""},
}


@pytest.mark.parametrize("change", ARRAY_CHANGES)
def test_hostile_arrays_are_refused(change: str, saved: Path, tmp_path: Path) -> None:
    header, entries = parts_of(saved)
    refused(rebuilt(tmp_path / "hostile.imapce", header, ARRAY_CHANGES[change](entries)))
    assert not Trap.sprung
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile.imapce"]


HEADER_CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], tuple[str, ...]]] = {
    "another version": (lambda h: h | {"version": 2}, ("version 2",)),
    "no version": (lambda h: {k: v for k, v in h.items() if k != "version"}, ("version",)),
    "another kind": (lambda h: h | {"format": "imapce-session"}, ("imapce-session",)),
    "a foreign format": (lambda h: h | {"format": ["x"]}, ()),
    "a list": (lambda h: [h], ("list",)),
    "not JSON": (lambda h: b"{not json", ()),
    "not text": (lambda h: b"\xff\xfe\x00", ()),
    "no bytes": (lambda h: b"", ()),
    "deep nesting": (lambda h: b"[" * 200_000 + b"]" * 200_000, ()),
    "deep nesting inside": (
        lambda h: json.dumps(h)[:-1].encode() + b', "encoding": ' + b"[" * 90_000 + b"]" * 90_000 + b"}",
        (),
    ),
    "a stranger among the parameters": (lambda h: h | {"parameters": {"__class__": "os.system"}}, ()),
    "parameters of a wrong kind": (lambda h: h | {"parameters": h["parameters"] | {"n_components": "2"}}, ()),
    "parameters out of range": (lambda h: h | {"parameters": h["parameters"] | {"alpha": -1}}, ()),
    "parameters that are a list": (lambda h: h | {"parameters": [1, 2]}, ()),
    "another number of axes": (lambda h: h | {"parameters": h["parameters"] | {"n_components": 3}}, ()),
    "too many optima": (lambda h: h | {"optima": [*h["optima"], h["optima"][0]]}, ()),
    "optima without objective": (lambda h: h | {"optima": [{} for _ in h["optima"]]}, ()),
    "a missing entry": (lambda h: {k: v for k, v in h.items() if k != "mu_"}, ("mu_",)),
    "text for a number": (lambda h: h | {"mu_": "much"}, ()),
    "NaN for a number": (lambda h: json.dumps(h | {"mu_": float("nan")}).encode(), ()),
    "names that are not text": (lambda h: h | {"feature_names_in_": [1] * 8}, ()),
    "too few names": (lambda h: h | {"feature_names_in_": ["a"]}, ()),
    "another number of features": (lambda h: h | {"n_features_in_": 5}, ()),
    "a foreign encoding": (lambda h: h | {"encoding": {"columns": "x"}}, ()),
    "a long integer": (lambda h: json.dumps(h).encode()[:-1] + b', "mu_": ' + b"9" * 6000 + b"}", ()),
}


@pytest.mark.parametrize("change", HEADER_CHANGES)
def test_hostile_headers_are_refused(change: str, saved: Path, tmp_path: Path) -> None:
    header, entries = parts_of(saved)
    make, parts = HEADER_CHANGES[change]
    refused(rebuilt(tmp_path / "hostile.imapce", make(header), entries), *parts)


def test_entries_that_claim_too_many_bytes_are_refused_unread(saved: Path, tmp_path: Path) -> None:
    content = bytearray(saved.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    earlier = content.rindex(b"PK\x01\x02", 0, place)
    # The uncompressed size in an entry of the central directory: 24 bytes after its signature.
    for entry in (earlier, place):
        struct.pack_into("<I", content, entry + 24, 0x9000_0000)
    path = tmp_path / "bomb.imapce"
    path.write_bytes(content)
    refused(path, "claims")


def test_a_header_that_claims_too_many_bytes_is_refused_unread(saved: Path, tmp_path: Path) -> None:
    content = bytearray(saved.read_bytes())
    place = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, place + 24, 0x7000_0000)
    path = tmp_path / "bomb.imapce"
    path.write_bytes(content)
    refused(path, "header")


def test_two_headers_are_refused(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "twice.imapce"
    path.write_bytes(saved.read_bytes())
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("header.json", "{}")
    refused(path, "header.json")


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "random.imapce"
    path.write_bytes(content)
    refused(path)


def test_an_empty_file_a_folder_a_missing_file_and_a_foreign_zip_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    refused(tmp_path / "empty")
    refused(tmp_path, "not a file")
    refused(tmp_path / "nothing", "not a file")
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    refused(tmp_path / "foreign.zip", "header.json")


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_nothing_else(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "view.imapce"
    path.write_bytes(saved.read_bytes())
    model = load_model(saved)
    model.stop_reason_ = float("nan")  # type: ignore[assignment]
    with pytest.raises(ValueError):
        model.save(path)
    model.stop_reason_ = ""
    model.mean_ = np.array([Trap()], dtype=object)
    with pytest.raises(ValueError):
        model.save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["view.imapce"]


def test_saving_to_a_folder_or_below_a_missing_one_is_refused_in_one_sentence(saved: Path, tmp_path: Path) -> None:
    model = load_model(saved)
    for place in (tmp_path, tmp_path / "missing" / "view.imapce"):
        with pytest.raises(InvalidValueError, match=r"^path must") as caught:
            model.save(place)
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_saving_before_fitting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        IMAPCE().save(tmp_path / "view.imapce")


def test_archives_of_other_kinds_round_trip_and_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    write_archive(path, "session", 3, {"a": [1, "ü"]}, {"x": np.arange(4), "y": np.array([True])})
    header, arrays = read_archive(path, "session", 3)
    assert header["a"] == [1, "ü"]
    assert np.array_equal(arrays["x"], np.arange(4))
    assert arrays["y"].dtype == bool
    with pytest.raises(ImapceError, match="imapce-session"):
        read_archive(path, "model", 3)
    with pytest.raises(ImapceError, match="version 3"):
        read_archive(path, "session", 4)
