"""A view of an AnnData, kept where scanpy's pictures look for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.anndata.names import known
from imapce.common.arrays import Array
from imapce.common.words import listing
from imapce.errors import InvalidTypeError
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import plain_parameters
from imapce.tables.annotated import features


def embed(
    adata: Any,
    *,
    prior: Any = None,
    layer: str | None = None,
    use_rep: str | None = None,
    key: str = "imapce",
    **parameters: Any,
) -> IMAPCE:
    """Fit IMAPCE to the cells, write the view into `adata`, and return the fitted model for new rows, plots and files.

    Written are obsm["X_imapce"] (the view, for `sc.pl.embedding(adata, "imapce")`), varm["imapce"] (the axes: a weight
    for each variable after scaling; not with `use_rep`, whose columns are no variables) and uns["imapce"] (alpha, mu,
    the shares of variance, why the search stopped, how well the known is read back, the parameters), under another name
    with `key`. `prior` is read by `known`: the name of a column of obs, another AnnData as background, or the priors of
    IMAPCE. `layer` and `use_rep` choose the matrix as in `features`; a representation has a scale of its own, so its
    columns are centred and not standardised unless `standardize` says so. `parameters` are those of IMAPCE. What is
    refused changes nothing.

    >>> from anndata import AnnData
    >>> cells = AnnData(np.random.default_rng(0).normal(size=(60, 5)))
    >>> embed(cells, alpha=0.0, mu=0.0).components_.shape, cells.uns["imapce"]["alpha"]
    ((2, 5), 0.0)
    """
    require_key(key)
    require_parameters("embed", IMAPCE, parameters)
    matrix = features(adata, layer=layer, use_rep=use_rep)
    priors = known(adata, prior, layer=layer, use_rep=use_rep)
    model = IMAPCE(**{"standardize": use_rep is None, **parameters})
    view = np.asarray(model.fit_transform(matrix, prior=priors))
    write_view(adata, model, view, key=key, chosen=chosen_matrix(layer, use_rep))
    return model


def write_view(
    adata: Any, model: IMAPCE, view: Array, *, key: str = "imapce", chosen: dict[str, str] | None = None
) -> None:
    """Keep a view and how it was found in an AnnData; `chosen` names the layer or representation it was fitted to.

    >>> from anndata import AnnData
    >>> cells = AnnData(np.random.default_rng(0).normal(size=(60, 5)))
    >>> model = IMAPCE(alpha=0.0, mu=0.0).fit(features(cells))
    >>> write_view(cells, model, model.transform(features(cells)))
    >>> sorted(cells.uns["imapce"])
    ['alpha', 'explained_variance_ratio', 'mu', 'params', 'read_back', 'stop_reason']
    """
    chosen = chosen or {}
    adata.obsm[f"X_{key}"] = view
    if "use_rep" in chosen:
        # Axes of an earlier view under the same name would be read as those of this one.
        adata.varm.pop(key, None)
    else:
        weights = np.zeros((adata.n_vars, len(model.components_)))
        weights[adata.var_names.get_indexer(model.feature_names_in_)] = model.components_.T
        adata.varm[key] = weights
    adata.uns[key] = {
        "alpha": float(model.alpha_),
        "mu": float(model.mu_),
        "explained_variance_ratio": np.asarray(model.explained_variance_ratio_, dtype=np.float64),
        "stop_reason": str(model.stop_reason_),
        "read_back": set_ones(model.read_back_ or {}),
        "params": {**set_ones(plain_parameters(model)), **chosen},
    }


def set_ones(entries: dict[str, Any]) -> dict[str, Any]:
    """The entries that are not None, which no file of this format holds everywhere: what was not set is left out.

    >>> set_ones({"alpha": 1.0, "random_state": None})
    {'alpha': 1.0}
    """
    return {name: value for name, value in entries.items() if value is not None}


def chosen_matrix(layer: str | None, use_rep: str | None) -> dict[str, str]:
    """What was named of `layer` and `use_rep`.

    >>> chosen_matrix("log", None)
    {'layer': 'log'}
    """
    return set_ones({"layer": layer, "use_rep": use_rep})


def require_parameters(call: str, estimator: type, parameters: dict[str, Any], *, own: tuple[str, ...] = ()) -> None:
    """Refuse what is no parameter of the estimator, or is one that the call has under its own name.

    >>> require_parameters("embed", IMAPCE, {"mu": 1.0})
    """
    names = [name for name in estimator().get_params() if name not in own]
    if strangers := sorted(set(parameters) - set(names)):
        raise InvalidTypeError(
            f"{call} takes prior, layer, use_rep, key and the parameters of {estimator.__name__} ({listing(names)}); "
            f"got {strangers[0]!r}."
        )


def require_key(key: Any) -> None:
    """Refuse a name that no entry of an AnnData can have.

    >>> require_key("imapce")
    """
    if not (isinstance(key, str) and key.strip()) or "/" in key:
        # A slash would be read as a folder inside an .h5ad file.
        raise InvalidTypeError(f"key must be a name without a slash, such as 'imapce'; got {key!r}.")
