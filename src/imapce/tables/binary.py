"""Tables and matrices in binary files: Parquet (one, a folder or a pattern), Arrow, .npy and .npz.

Each reader refuses what a damaged or hostile file would do to memory; `tables.files` makes one sentence of it.
"""

from __future__ import annotations

import glob
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.sparse

from imapce.common.words import listing
from imapce.errors import FileFormatError

# Called with a size in bytes; raises where it is beyond the limit.
Limit = Callable[[int], None]
_PATTERN = frozenset("*?[")


def parts_of(path: str) -> list[Path] | None:
    """The .parquet files of a folder or of a pattern, in the order of their names; None for a plain path.

    >>> parts_of("rows.parquet")
    """
    place = Path(path)
    if place.is_dir():
        parts = sorted(part for part in place.rglob("*.parquet") if part.is_file())
    elif not place.exists() and _PATTERN & set(path):
        parts = sorted(part for name in glob.glob(path, recursive=True) if (part := Path(name)).is_file())
        strangers = [part.name for part in parts if part.suffix.lower() != ".parquet"]
        if not parts or strangers:
            held = f"which also finds {strangers[0]!r}" if strangers else "which finds no file"
            raise FileFormatError("path", f"must find .parquet files only, got {path!r}, {held}: correct the pattern.")
    else:
        return None
    if not parts:
        raise FileFormatError(
            "path",
            f"must name a file or a folder of .parquet files, got {path!r}, which is not one: name a file in it.",
        )
    return parts


def read_parts(parts: list[Path], limit: Limit) -> pa.Table:
    """One table of many Parquet files, which must have the same columns; their order may differ."""
    tables: list[pa.Table] = []
    total = 0
    for part in parts:
        table = read_parquet(part, limit)
        total += table.nbytes
        limit(total)
        first = tables[0].column_names if tables else table.column_names
        if sorted(table.column_names) != sorted(first):
            odd = sorted(set(first) ^ set(table.column_names))
            raise FileFormatError(
                "path",
                f"must find files with the same columns, and {parts[0].name!r} and {part.name!r} differ in "
                f"{listing(map(repr, odd), 10)}: take one of them out or write both with the same columns.",
            )
        tables.append(table.select(first))
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as problem:
        reason = " ".join(str(problem).split())[:200]
        raise FileFormatError(
            "path", f"must find files whose columns have the same types, and these differ ({reason}): write them again."
        ) from problem


def read_parquet(file: Path, limit: Limit) -> pa.Table:
    """The table of one Parquet file, without a stored pandas index."""
    with pyarrow.parquet.ParquetFile(file) as source:
        groups = range(source.metadata.num_row_groups)
        unpacked = sum(source.metadata.row_group(group).total_byte_size for group in groups)
        # Runs of one value take next to no bytes, so each cell counts as at least one.
        limit(max(unpacked, source.metadata.num_rows * source.metadata.num_columns))
        return _without_index(source.read())


def _without_index(table: pa.Table) -> pa.Table:
    """The table without the index that pandas stored beside its columns: row names are no feature."""
    stored = (table.schema.metadata or {}).get(b"pandas")
    try:
        described = json.loads(stored) if stored is not None else {}
        index = [name for name in described.get("index_columns", []) if isinstance(name, str)]
    except (ValueError, AttributeError, TypeError):
        # Another program's idea of this field; the columns are then taken as they are.
        return table
    return table.drop_columns([name for name in index if name in table.column_names])


def read_arrow(file: Path, limit: Limit) -> pa.Table:
    """The table of an Arrow file, in the format with a footer or in that of streams."""
    with pa.OSFile(str(file)) as source:
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            # The same suffixes are in use for the streaming format, which has no footer.
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
    # Arrow trusts the offsets in the file; wrong ones would be read beyond the end of memory.
    table.validate(full=True)
    limit(table.nbytes)
    return _without_index(table)


def read_npy(file: Path) -> np.ndarray:
    """The 2-D array of numbers in an .npy file."""
    # A memory map checks the promised shape against the file, where a plain load would allocate it first.
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(mapped, np.ndarray):
        mapped.close()
        raise ValueError("it is an .npz archive")
    return np.array(numeric_matrix(mapped))


def read_npz(file: Path, limit: Limit) -> Any:
    """The one 2-D array, or the sparse matrix, in an .npz file."""
    limit(unpacked_size(file))
    with np.load(file, allow_pickle=False) as arrays:
        if not {"format", "shape", "data"} <= set(arrays.files):
            if len(arrays.files) != 1:
                raise ValueError(f"it must hold one array, not {listing(map(repr, arrays.files), 10)}")
            return numeric_matrix(arrays[arrays.files[0]])
    sparse = scipy.sparse.load_npz(file)
    if sparse.dtype.kind not in "biuf":
        raise ValueError(f"its values are {sparse.dtype}, not numbers")
    if sparse.format in ("csr", "csc", "bsr"):
        # Indices beyond the shape would be followed beyond the end of memory by every later product.
        sparse.check_format(full_check=True)
    return sparse if sparse.format in ("csr", "csc") else sparse.tocsr()


def unpacked_size(file: Path) -> int:
    """The bytes that a zip archive (.npz, .xlsx) unpacks to."""
    with zipfile.ZipFile(file) as archive:
        return sum(member.file_size for member in archive.infolist())


def numeric_matrix(values: np.ndarray) -> np.ndarray:
    """The array itself, if it is 2-D and of numbers.

    >>> numeric_matrix(np.ones((2, 3))).shape
    (2, 3)
    """
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(f"it must hold a 2-D array of numbers, not {values.ndim}-D {values.dtype}")
    return values
