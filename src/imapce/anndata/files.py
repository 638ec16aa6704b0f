"""Copies of .h5ad files with a view or with clusters added: whole or not at all, the source untouched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from imapce.common.whole_files import whole_file
from imapce.errors import ImapceError, InvalidValueError, needs
from imapce.tables.annotated import EXTRA


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
            "path",
            f"must be a place where the cells can be written, got {str(target)!r} ({reason}): free the place or "
            "choose another file.",
        ) from problem
