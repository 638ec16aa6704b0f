"""Puts this folder on the import path, so that tests in subfolders share `helpers`; property tests repeat exactly.

BLAS gets one thread: the arrays are small, and parallel workers with several threads each get in one another's way.
"""

from __future__ import annotations

import numpy  # noqa: F401 - loads the BLAS libraries that are limited below
import scipy.linalg  # noqa: F401
from hypothesis import settings
from threadpoolctl import threadpool_limits

threadpool_limits(1, user_api="blas")
settings.register_profile("imapce", deadline=None, derandomize=True, max_examples=15, database=None)
settings.load_profile("imapce")
