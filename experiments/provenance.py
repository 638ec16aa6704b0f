"""Where figures come from: the day, the commit and the machine of a run, kept as NAME.json beside its NAME.csv.

Nothing but the standard library is needed, so that a machine with a graphics card and little else can write one.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "matplotlib", "pymanopt", "contrastive", "openTSNE"),
    *("numba", "umap-learn", "harmonypy", "scanpy", "leidenalg", "dask", "uvicorn", "websockets", "playwright"),
    *("cupy-cuda12x", "cupy-cuda13x"),
)
# The file left out holds the version and the names of the package, and computes nothing.
COMPUTES = ("src", ":!src/imapce/__init__.py")

Run = dict[str, Any]


def note_run(
    folder: Path,
    name: str,
    seconds: float,
    *,
    machine_too: Mapping[str, Any] | None = None,
    versions_too: Mapping[str, str] | None = None,
    **more: Any,
) -> None:
    """Put down when, on which code and where the figures of NAME.csv were measured, and for how many seconds.

    What a script alone knows of its machine and versions, a card or a browser, stands with the others.
    """
    run = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": {**machine(), **(machine_too or {})},
        "versions": {**versions(), **(versions_too or {})},
        "seconds": round(seconds, 1),
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**run, **more}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def read_runs(folder: Path) -> dict[str, Run]:
    """{name: its run} of all that was measured into a folder."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def commit(root: Path = ROOT) -> str:
    """The last commit that changed the package, "+" where it was changed since.

    IMAPCE_COMMIT goes before it, for a machine that has a copy of the tree alone. Of an unpacked archive, which has no
    commits, the release is told.
    """
    if told := os.environ.get("IMAPCE_COMMIT"):
        return told
    if not (root / ".git").exists():
        return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", *COMPUTES)
    return _git(root, "log", "-1", "--format=%h", "--", *COMPUTES) + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def machine() -> dict[str, Any]:
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "memory_gib": round(memory),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    """Python and the libraries that figures depend on, where they are installed."""
    found = {"Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
