"""What is known of an AnnData, by names: a column of `obs`, another AnnData as background, rows that a column marks."""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.common.words import close_matches
from imapce.errors import Argument, ImapceError, InvalidTypeError, InvalidValueError, Reference
from imapce.priors.base import Prior
from imapce.priors.kinds import Labels, Samples, as_list
from imapce.priors.names import NamedColumns
from imapce.tables.named import features


def known(adata: Any, prior: Any, *, layer: str | None = None, use_rep: str | None = None) -> list[Prior]:
    """The priors of `IMAPCE.fit` that names in an AnnData stand for.

    A text is a column of `obs`, as `Labels` of it, or a variable, as `Attributes`; another AnnData is a background, as
    `Samples` of its rows (the same `layer` or `use_rep`, variables matched by name). Inside the priors themselves names
    work too: Labels("batch", erase=True), Subset("is_control") for a true/false column, Samples(other, weight=2.0).
    Several go in a list.

    >>> from anndata import AnnData
    >>> from imapce import Subset
    >>> cells = AnnData(np.eye(4, 3))
    >>> cells.obs["control"] = [True, True, False, False]
    >>> known(cells, Subset("control"))[0].rows
    array([ True,  True, False, False])
    """
    given = [] if prior is None else list(prior) if isinstance(prior, (list, tuple)) else [prior]

    def background(other: Any, name: str = "Samples") -> Any:
        return features(other, layer=layer, use_rep=use_rep, name=name) if is_anndata(other) else other

    # Where both have the name, the column of obs is meant, which somebody wrote there.
    named = NamedColumns(
        adata.var_names,
        [str(name) for name in adata.obs.columns],
        lambda name: _labels(adata, name),
        called="a column of obs or a variable",
    )

    def read(known: Any) -> Prior:
        if isinstance(known, str):
            return named.prior(known)
        if is_anndata(known):
            return Samples(background(known, "the background"))
        return as_list(known)[0].look_up(
            labels=lambda y: _labels(adata, y) if isinstance(y, str) else y,
            rows=lambda rows: _marked(adata, rows) if isinstance(rows, str) else rows,
            background=background,
        )

    return [read(one) for one in given]


def is_anndata(value: Any) -> bool:
    """Whether a value is an AnnData, told without the library: it may be a subclass, or of another version.

    >>> is_anndata("batch")
    False
    """
    return hasattr(value, "obs_names") and hasattr(value, "var_names")


def require_key(key: Any) -> None:
    """Refuse a name that no entry of an AnnData can have.

    >>> require_key("imapce")
    """
    if not (isinstance(key, str) and key.strip()) or "/" in key:
        # A slash would be read as a folder inside an .h5ad file.
        raise InvalidTypeError(f"key must be a name without a slash, such as 'imapce'; got {key!r}.")


def require_column(adata: Any, name: Any, argument: str) -> Any:
    """A column of obs, by its name; what is none is refused in the name of an argument.

    >>> from anndata import AnnData
    >>> cells = AnnData(np.eye(2), obs={"batch": ["a", "b"]})
    >>> require_column(cells, "batch", "prior").tolist()
    ['a', 'b']
    """
    if not isinstance(name, str) or name not in adata.obs:
        known = [str(column) for column in adata.obs.columns]
        way = close_matches(name, known) if isinstance(name, str) else "pass its name."
        if argument == "prior" and name in adata.var_names:
            way = f"for a variable pass Attributes([{name!r}])."
        raise InvalidValueError(f"{argument} must name a column of obs, got {name!r:.80}: {way}")
    return adata.obs[name]


def _column(adata: Any, name: str) -> Any:
    values = require_column(adata, name, "prior")
    if values.dtype == "category":
        # A category is a class whatever it is called; many numbers would be read as a measurement.
        return values.astype(object).map(str, na_action="ignore")
    return values


def _labels(adata: Any, name: str) -> Any:
    """A column of obs that tells something of the cells; one that does not is refused by its name."""
    values = _column(adata, name)
    try:
        Labels(values).read_labels(adata.n_obs)
    except ImapceError as error:
        words: dict[Reference, str] = {Argument("Labels(y)"): f"prior={name!r}"}
        raise type(error)(error.rendered(lambda part: words.get(part, str(part)))) from error
    return values


def _marked(adata: Any, name: str) -> Any:
    """The rows that a true/false column marks; pandas may hold it as booleans, nullable ones or categories of them."""
    values = np.asarray(_column(adata, name))
    if values.dtype == object and all(isinstance(value, (bool, np.bool_)) for value in values):
        values = values.astype(bool)
    if values.dtype != bool:
        raise InvalidTypeError(
            f"Subset({name!r}) must name a column of obs that is true or false in every row, and this one holds "
            f"{values.dtype}: pass Subset(adata.obs[{name!r}] == value)."
        )
    return values
