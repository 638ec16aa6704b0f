"""Rows less the effect of the known, x° = x − Bᵀl, on whatever axes: what `IMAPCE` and `Given` share.

Known columns come with a row. Labels stand beside it, so those of new rows are asked for; a row without one has nothing
taken from it on their account.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imapce.common.arrays import Array, Codes
from imapce.common.dask_arrays import is_dask, shifted
from imapce.common.gpu_arrays import put_beside
from imapce.errors import InvalidValueError
from imapce.estimators.linear_rows import LinearRows
from imapce.priors.effect import Effect
from imapce.priors.kinds import Prior, as_list, labels_among, labels_of_new_rows
from imapce.priors.labels import LabelCode, ReadLabels


class ExplainedRows(LinearRows):
    """Rows with `effect_` taken from them before they are placed; None takes nothing."""

    effect_: Effect | None
    outliers_: Codes

    def given(self, X: Any, labels: Any = None) -> Array:
        """(n, d): the standardised rows less the effect of the known, X° = X − LB; `labels` as in `transform`.

        Columns that are known, and those that the known tells wholly, are 0.

        >>> from imapce import IMAPCE
        >>> rng, run = np.random.default_rng(0), np.arange(60) % 2
        >>> X = rng.normal(size=(60, 3)) + 5 * run[:, None]
        >>> left = IMAPCE().fit(X, prior=run).given(X, labels=run)
        >>> bool(np.abs(left[run == 0].mean(axis=0) - left[run == 1].mean(axis=0)).max() < 0.1)
        True
        """
        check_is_fitted(self)
        every = np.eye(len(self.scale_))
        return self._with_labels(self._shown(X, every, names=self.reader_.names), every, labels)

    @property
    def label_names(self) -> tuple[str, ...]:
        """What the labels are called that `transform` needs of every row, in their order; none where it needs none.

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> IMAPCE().fit(X, prior=np.arange(60) % 2).label_names
        ('labels',)
        """
        return tuple(code.title or "labels" for code in self._codes)

    @property
    def _codes(self) -> tuple[LabelCode, ...]:
        return () if self.effect_ is None else self.effect_.codes

    def _axes_of_columns(self, components: Array) -> Array:
        if self.effect_ is None:
            return components
        return self.effect_.frame(components, self.scale_)[:, : len(self.scale_)]

    def _takes_part(self, prior: Prior) -> bool:
        """Whether what is known in `fit` is among what is taken from the rows."""
        return not prior.erase

    def _with_known_labels(self, view: Any, prior: Any) -> Any:
        if not self._codes:
            return view
        read = labels_among(one for one in as_list(prior) if self._takes_part(one))
        counted = np.ones(len(read[0]), dtype=bool)
        counted[self.outliers_] = False
        # Without the rows set aside a label may say nothing; a class that only they have says nothing of them.
        varying = [one for one in read if one.of_rows(counted).varies]
        told = [one.only(code.names) for one, code in zip(varying, self._codes, strict=True)]
        return self._with_labels(view, self._shown_axes, told)

    def _read_labels(self, labels: Any, n_rows: int | None = None) -> list[ReadLabels] | None:
        names = ", ".join(self.label_names)
        if not names:
            return super()._read_labels(labels, n_rows)
        if labels is None:
            raise InvalidValueError(
                "labels",
                f"must be given for the rows of X: the fit was given {names}, whose effect is taken from every "
                "row. Pass labels=..., None for a row whose label is not known; a view fitted with Labels(y, "
                "erase=True) needs none.",
            )
        return labels_of_new_rows(labels, self._codes, n_rows)

    def _with_labels(self, view: Any, components: Array, labels: Any) -> Any:
        read = self._read_labels(labels, None if is_dask(view) else len(view))
        if read is None or self.effect_ is None:
            return view
        shift = self.effect_.beside(read) @ self.effect_.frame(components, self.scale_)[:, len(self.scale_) :].T
        if is_dask(view):
            return shifted(view, shift)
        return view + put_beside(view, shift)
