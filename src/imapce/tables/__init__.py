"""The user's table becomes a matrix: names, types, categories and missing values of pandas, polars and Arrow.

>>> encoded = encode(frame({"size": [1.0, 2.0, 3.0, 4.0, 5.0], "colour": ["red", "blue", "red", "red", "blue"]}))
>>> encoded.encoding.feature_names
('size', 'colour=blue', 'colour=red')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Not on first use, as `encode` has the name of its module, which would be found instead.
from imapce.tables.encode import Encoded, Table, column_names, encode, frame, is_table
from imapce.tables.learn import Encoding
from imapce.tables.named import NamedMatrix

if TYPE_CHECKING:
    from imapce.tables.dialect import Dialect
    from imapce.tables.files import read_table, recognised, write_table
    from imapce.tables.usable import select, usable_columns

__all__ = [
    "Dialect",
    "Encoded",
    "Encoding",
    "NamedMatrix",
    "Table",
    "column_names",
    "encode",
    "frame",
    "is_table",
    "read_table",
    "recognised",
    "select",
    "usable_columns",
    "write_table",
]

# Those who fit arrays read no files.
_HOMES = {
    "Dialect": "dialect",
    "read_table": "files",
    "recognised": "files",
    "select": "usable",
    "usable_columns": "usable",
    "write_table": "files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'imapce.tables' has no attribute {name!r}")
    return getattr(importlib.import_module(f"imapce.tables.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]
