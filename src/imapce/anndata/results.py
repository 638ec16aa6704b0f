"""What was found in an AnnData, kept where scanpy looks for it: views and corrected cells in `obsm`, clusters in `obs`.

A copy of an .h5ad file with them is written whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from imapce.anndata.names import known, require_key
from imapce.common.arrays import Array
from imapce.common.whole_files import whole_file
from imapce.common.words import listing
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError, needs
from imapce.estimators.given import Given
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import plain_parameters
from imapce.priors.base import Prior
from imapce.tables.named import EXTRA, features


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
        adata.varm[key] = variable_weights(adata, list(model.feature_names_in_), model.components_)
    adata.uns[key] = {
        "alpha": float(model.alpha_),
        "mu": float(model.mu_),
        "explained_variance_ratio": np.asarray(model.explained_variance_ratio_, dtype=np.float64),
        "stop_reason": str(model.stop_reason_),
        "read_back": set_ones(model.read_back_ or {}),
        "params": {**set_ones(plain_parameters(model)), **chosen},
    }


def variable_weights(adata: Any, names: Sequence[str], components: Array) -> Array | None:
    """(variables, k): axes (k, d) of named columns as weights of the variables, 0 of others; None where a column is no
    variable.

    >>> from anndata import AnnData
    >>> variable_weights(AnnData(np.eye(3)), ["2", "0"], np.array([[0.6, 0.8]])).tolist()
    [[0.8], [0.0], [0.6]]
    """
    places = adata.var_names.get_indexer(list(names)) if adata.var_names.is_unique else np.array([-1])
    if (places < 0).any():
        return None
    weights = np.zeros((adata.n_vars, len(components)))
    weights[places] = components.T
    return weights


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
    write_corrected(adata, model, left, priors=priors, key=key, chosen=chosen_matrix(layer, use_rep))
    return model


def write_corrected(
    adata: Any,
    model: Given,
    left: Array,
    *,
    priors: Sequence[Prior],
    key: str = "given",
    chosen: dict[str, str] | None = None,
) -> None:
    """Keep cells less the effect of `priors` in an AnnData; `chosen` names the layer or representation they came from.

    >>> from anndata import AnnData
    >>> from imapce import Labels
    >>> cells, batch = AnnData(np.random.default_rng(0).normal(size=(60, 5))), Labels(np.arange(60) % 2)
    >>> model = Given()
    >>> write_corrected(cells, model, model.fit_transform(features(cells), prior=[batch]), priors=[batch])
    >>> sorted(cells.uns["given"])
    ['erased', 'known', 'params', 'read_back']
    """
    columns = [str(name) for one in priors for name in one.listed]
    adata.obsm[f"X_{key}"] = left
    adata.uns[key] = {
        "known": list(dict.fromkeys([*columns, *model.label_names])),
        "erased": any(one.erase for one in priors),
        "read_back": set_ones(model.read_back_ or {}),
        "params": {
            **set_ones({name: value for name, value in model.get_params().items() if name != "prior"}),
            **(chosen or {}),
        },
    }


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
