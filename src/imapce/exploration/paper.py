"""The paper's own way as one switch: views at the paper's weights, clusters of a view by a Dirichlet mixture.

Algorithm 1 as published looks for clusters where it shows them, in the view (`clustering`, equations 4 and 5). By
default they are found once and in all directions, which is why the two take other clusters.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from imapce.common.checks import require_choice, require_truth
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.clustering import CLUSTERERS

WAYS = ("auto", "paper")


def settings_of(method: str, estimator: Any, clusterer: str, refine: bool | None) -> tuple[IMAPCE, str, bool]:
    """What a method means: the estimator, the clusterer and whether its clusters are refined, where these are not said.

    >>> settings_of("paper", None, "auto", None)
    (IMAPCE(alpha=1.0, mu='paper', outliers='keep'), 'dpgmm', False)
    """
    require_choice("method", method, WAYS)
    require_choice("clusterer", clusterer, CLUSTERERS)
    if refine is not None:
        require_truth("refine", refine)
    if estimator is not None and not isinstance(estimator, IMAPCE):
        raise InvalidTypeError(f"estimator must be an IMAPCE; got {estimator!r:.80}.")
    if method == "auto":
        model = IMAPCE(outliers="keep") if estimator is None else clone(estimator)
        return model, clusterer, refine is None or bool(refine)
    for name, said, wanted in (("clusterer", clusterer, ("auto", "dpgmm")), ("refine", refine, (None, False))):
        if said not in wanted:
            raise InvalidValueError(
                f'{name} must be {wanted[1]!r} with method="paper", whose it is; got {said!r}: leave it out, or choose '
                'method="auto".'
            )
    model = IMAPCE(alpha=1.0, mu="paper", outliers="keep") if estimator is None else clone(estimator)
    return model, "dpgmm", False
