"""AnnData in and out: views and corrected cells to `obsm`, loadings to `varm`, clusters to `obs`, what is told of them
to `uns`; what is known by the name of a column.

>>> from anndata import AnnData
>>> cells = AnnData(np.random.default_rng(0).poisson(2.0, size=(120, 6)).astype(float))
>>> cells.obs["batch"] = np.arange(120) % 2
>>> model = embed(cells, prior="batch", random_state=0)
>>> cells.obsm["X_imapce"].shape, cells.varm["imapce"].shape
((120, 2), (6, 2))
"""

from imapce.anndata.clusters import write_clusters
from imapce.anndata.markers import write_markers
from imapce.anndata.names import known
from imapce.anndata.results import correct, embed
from imapce.errors import needs
from imapce.tables.named import EXTRA, features

with needs("imapce.anndata", EXTRA):
    import anndata  # noqa: F401 - absolute: the library, not this room

__all__ = ["correct", "embed", "features", "known", "write_clusters", "write_markers"]
