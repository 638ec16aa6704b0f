"""Model and session files taken apart and put together again, for tests of damaged ones."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def unpacked(path: Path) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Header and arrays with zipfile, json and NumPy alone."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name != "header.json"]
        return header, {name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name))) for name in names}


def repacked(path: Path, header: dict[str, Any], arrays: dict[str, NDArray]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return path
