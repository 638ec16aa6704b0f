"""imapce: see what else is in your data."""

from imapce.errors import ImapceError
from imapce.estimator import IMAPCE, Optimum, load_model
from imapce.priors import Attributes, Samples, Subset

__version__ = "0.1.0"

__all__ = ["IMAPCE", "Attributes", "ImapceError", "Optimum", "Samples", "Subset", "__version__", "load_model"]
