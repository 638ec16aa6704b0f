"""JSON as tables: records, columns, pandas' ways to write a table, and one object a line.

>>> read_json(b'[{"size": 1.5, "kind": "a"}, {"size": "n.a."}]').to_pydict()
{'size': ['1.5', 'n.a.'], 'kind': ['a', None]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

# Arrow counts the bytes of a block with 32 bits.
_LARGEST_BLOCK = (1 << 31) - 1
_MUST = "it must be a list of objects, or an object of columns"


def read_json(source: Path | bytes) -> pa.Table:
    """A list of objects (records), an object of lists or of objects (columns), {"columns": ..., "data": ...} as pandas
    splits a table, or one object a line; a key that a record lacks is a missing value.
    """
    text = _bytes(source).decode("utf-8-sig")
    try:
        held = json.loads(text)
    except json.JSONDecodeError as problem:
        if problem.msg != "Extra data":
            raise
        return read_json_lines(source)
    if isinstance(held, Mapping) and isinstance(held.get("data"), list):
        names, rows = held.get("columns"), held["data"]
        if isinstance(names, list) and all(isinstance(row, list) and len(row) == len(names) for row in rows):
            return _table({str(name): [row[place] for row in rows] for place, name in enumerate(names)})
        held = rows
    if isinstance(held, list) and held and all(isinstance(row, Mapping) for row in held):
        # In the order in which keys are first seen.
        keys = dict.fromkeys(key for row in held for key in row)
        return _table({key: [row.get(key) for row in held] for key in keys})
    if isinstance(held, Mapping) and held:
        columns = {key: _cells(values) for key, values in held.items()}
        if len({len(values) for values in columns.values()}) == 1:
            return _table(columns)
        raise ValueError(f"{_MUST} of one length, and these have different lengths")
    raise ValueError(_MUST)


def read_json_lines(source: Path | bytes) -> pa.Table:
    """One object a line; a key that a line lacks is a missing value."""
    data = _bytes(source).removeprefix(b"\xef\xbb\xbf")
    options = pyarrow.json.ReadOptions(block_size=min(max(len(data), 1), _LARGEST_BLOCK))
    try:
        return pyarrow.json.read_json(pa.BufferReader(data), read_options=options)
    except pa.ArrowInvalid:
        # Arrow refuses a column that changes its type, as one with a word among numbers does.
        rows = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
        if not rows or not all(isinstance(row, Mapping) for row in rows):
            raise
        return read_json(json.dumps(rows).encode())


def _cells(values: Any) -> list[Any]:
    if isinstance(values, Mapping):
        return list(values.values())
    if isinstance(values, list):
        return values
    raise ValueError(_MUST)


def _table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: Sequence[Any]) -> pa.Array:
    """One column; where numbers and words stand side by side, all as text, which is read as people write it."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]
        return pa.array(texts, pa.string())


def _bytes(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()
