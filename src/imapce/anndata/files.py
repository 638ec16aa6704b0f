"""Copies of .h5ad files with a view or with clusters added: whole or not at all, the source untouched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imapce.common.whole_files import whole_file, writable_target
from imapce.errors import ImapceError, InvalidValueError, needs
from imapce.tables.annotated import EXTRA

SUFFIX = ".h5ad"


def is_h5ad(path: str | os.PathLike[str] | None) -> bool:
    """Whether a path names an .h5ad file.

    >>> is_h5ad("cells.H5AD"), is_h5ad("cells.csv"), is_h5ad(None)
    (True, False, False)
    """
    return path is not None and Path(path).name.lower().endswith(SUFFIX)


def h5ad_target(path: str, source: str) -> Path:
    """The file that `annotated_copy` would write, or one sentence on why it could not; for checks ahead of long work.

    >>> h5ad_target("out.h5ad", "cells.csv")
    Traceback (most recent call last):
    imapce.errors.InvalidValueError: path can be .h5ad where the rows come from one, got 'out.h5ad' for 'cells.csv': ...
    """
    if not is_h5ad(source):
        raise InvalidValueError(
            f"path can be .h5ad where the rows come from one, got {path!r} for {source!r}: use .parquet or .csv."
        )
    return writable_target(path)


@contextmanager
def annotated_copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Iterator[Any]:
    """The AnnData of `source`, which becomes the file `target` as the block leaves it, if the block ends well.

    >>> from anndata import AnnData
    >>> AnnData(np.eye(3, 2)).write_h5ad("cells.h5ad")
    >>> with annotated_copy("cells.h5ad", "more.h5ad") as cells:
    ...     cells.obs["kind"] = ["a", "b", "a"]
    >>> import anndata
    >>> anndata.read_h5ad("more.h5ad").obs["kind"].tolist()
    ['a', 'b', 'a']
    """
    with needs("An .h5ad file", EXTRA):
        import anndata
    adata = anndata.read_h5ad(source)
    yield adata
    try:
        with whole_file(target) as stream:
            # HDF5 opens files itself, by name: the unfinished one that takes its place when it is whole.
            adata.write_h5ad(stream.name, compression="gzip")
    except ImapceError:
        raise
    # The library refuses what no file can hold with errors of its own, and HDF5 a full disk with several.
    except Exception as problem:
        reason = " ".join(str(problem).split())[:200]
        raise InvalidValueError(
            f"path must be a place where the cells can be written, got {str(target)!r} ({reason}): free the place or "
            "choose another file."
        ) from problem
