"""The user's table becomes a matrix: names, types, categories and missing values of pandas, polars and Arrow.

>>> encoded = encode(frame({"size": [1.0, 2.0, 3.0, 4.0, 5.0], "colour": ["red", "blue", "red", "red", "blue"]}))
>>> encoded.encoding.feature_names
('size', 'colour=blue', 'colour=red')
"""

from imapce.tables.dialect import Dialect
from imapce.tables.encode import Encoded, column_names, encode, frame, is_table
from imapce.tables.encoding import Encoding
from imapce.tables.files import read_table, recognised, write_table
from imapce.tables.select import select
from imapce.tables.usable import usable_columns

__all__ = [
    "Dialect",
    "Encoded",
    "Encoding",
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
