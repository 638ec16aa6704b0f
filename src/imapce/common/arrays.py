"""What arrays are called in signatures: numbers, masks and the codes of classes or places.

>>> codes: Codes = np.array([0, 1, 0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]
