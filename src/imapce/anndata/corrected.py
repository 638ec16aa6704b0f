"""The cells less what the known does to them, kept where neighbours, clusterings and maps of scanpy take them from."""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.anndata.names import known
from imapce.anndata.views import chosen_matrix, require_key, require_parameters, set_ones
from imapce.errors import InvalidTypeError
from imapce.estimators.given import Given
from imapce.tables.annotated import features


def correct(
    adata: Any,
    *,
    prior: Any,
    layer: str | None = None,
    use_rep: str | None = None,
    key: str = "given",
    **parameters: Any,
) -> Given:
    """Take the effect of the known from the cells, write what is left into `adata`, and return the fitted `Given`.

    Written are obsm["X_given"] (all variables, or the columns of `use_rep`, for `sc.pp.neighbors(adata,
    use_rep="X_given")` and with it Leiden and UMAP) and uns["given"] (what is known, how well it is read back from the
    clusters, the parameters), under another name with `key`. It is an array, also of a sparse matrix: choose the
    variables, or a representation, before. `prior`, `layer` and `use_rep` are those of `embed`; a representation is
    centred and not standardised unless `standardize` says so. `parameters` are those of Given. What is refused changes
    nothing.

    >>> from anndata import AnnData
    >>> batch = np.arange(60) % 2
    >>> cells = AnnData(np.random.default_rng(0).normal(size=(60, 5)) + 3 * batch[:, None])
    >>> cells.obs["batch"] = batch
    >>> correct(cells, prior="batch").label_names, cells.obsm["X_given"].shape
    (('batch',), (60, 5))
    """
    require_key(key)
    require_parameters("correct", Given, parameters, own=("prior",))
    matrix = features(adata, layer=layer, use_rep=use_rep)
    priors = known(adata, prior, layer=layer, use_rep=use_rep)
    if not priors:
        raise InvalidTypeError("prior must tell what is known, such as the name of a column of obs; got nothing.")
    model = Given(**{"standardize": use_rep is None, **parameters})
    left = np.asarray(model.fit_transform(matrix, prior=priors))
    columns = [str(name) for one in priors for name in one.listed]
    adata.obsm[f"X_{key}"] = left
    adata.uns[key] = {
        "known": list(dict.fromkeys([*columns, *model.label_names])),
        "erased": any(one.erase for one in priors),
        "read_back": set_ones(model.read_back_ or {}),
        "params": {
            **set_ones({name: value for name, value in model.get_params().items() if name != "prior"}),
            **chosen_matrix(layer, use_rep),
        },
    }
    return model
