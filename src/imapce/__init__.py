"""imapce: see what else is in your data."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imapce.errors import ImapceError
    from imapce.estimator import IMAPCE, Optimum, load_model
    from imapce.exploration import Exploration
    from imapce.priors import Attributes, Samples, Subset

__version__ = "0.1.0"

__all__ = [
    "IMAPCE",
    "Attributes",
    "Exploration",
    "ImapceError",
    "Optimum",
    "Samples",
    "Subset",
    "__version__",
    "load_model",
]

# Names are imported when first used: scikit-learn and Arrow take over a second, and `imapce --help` needs neither.
_HOME = {
    "IMAPCE": "imapce.estimator",
    "Attributes": "imapce.priors",
    "Exploration": "imapce.exploration",
    "ImapceError": "imapce.errors",
    "Optimum": "imapce.estimator",
    "Samples": "imapce.priors",
    "Subset": "imapce.priors",
    "load_model": "imapce.estimator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'imapce' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
