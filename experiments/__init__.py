"""The tables of the paper, its numbers beside ours: `python -m experiments table1`."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).parents[2] / "shared" / "data"
# An IMAPCE_DATA that is empty is a choice too: no data folder.
if "IMAPCE_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["IMAPCE_DATA"] = str(_BESIDE)
