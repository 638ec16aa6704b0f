"""imapce: see what else is in your data.

>>> import imapce
>>> view = imapce.IMAPCE(random_state=0).fit_transform(imapce.datasets.load_digits().X)
>>> view.shape
(1797, 2)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imapce import anndata as anndata
    from imapce import baselines as baselines
    from imapce import datasets as datasets
    from imapce import metrics as metrics
    from imapce import plotting as plotting
    from imapce import tables as tables
    from imapce.errors import ImapceError
    from imapce.estimators.given import Given
    from imapce.estimators.imapce import IMAPCE
    from imapce.estimators.model_file import load_model
    from imapce.exploration.session import Exploration
    from imapce.priors.kinds import Attributes, Labels, Samples, Subset
    from imapce.search.race import Optimum
    from imapce.tables.reading import read
    from imapce.tables.scan import scan

__version__ = "0.2.0"

__all__ = [
    "IMAPCE",
    "Attributes",
    "Exploration",
    "Given",
    "ImapceError",
    "Labels",
    "Optimum",
    "Samples",
    "Subset",
    "__version__",
    "load_model",
    "read",
    "scan",
]

# Names are imported when first used: scikit-learn and Arrow take over a second, and `imapce --help` needs neither.
_HOME = {
    "IMAPCE": "imapce.estimators.imapce",
    "Attributes": "imapce.priors.kinds",
    "Exploration": "imapce.exploration.session",
    "Given": "imapce.estimators.given",
    "ImapceError": "imapce.errors",
    "Labels": "imapce.priors.kinds",
    "Optimum": "imapce.search.race",
    "Samples": "imapce.priors.kinds",
    "Subset": "imapce.priors.kinds",
    "load_model": "imapce.estimators.model_file",
    "read": "imapce.tables.reading",
    "scan": "imapce.tables.scan",
}
_SUBMODULES = ("anndata", "baselines", "datasets", "metrics", "plotting", "tables")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"imapce.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'imapce' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
