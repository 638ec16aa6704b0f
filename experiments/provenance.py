"""Where figures come from: day, commit and machine they were measured on, kept beside them as results.json."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from filelock import FileLock

from imapce.common.whole_files import whole_file

NAME = "results.json"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "pymanopt", "openTSNE", "umap-learn", "harmonypy")


def note_run(folder: Path, name: str, seconds: float, **more: Any) -> None:
    """Put the run of one experiment or benchmark down in the results.json of its folder."""
    path = folder / NAME
    # Experiments that run side by side share the file.
    with FileLock(f"{path}.lock"):
        kept = read_runs(folder)
        kept[name] = {
            "date": datetime.date.today().isoformat(),
            "commit": commit(),
            "seconds": round(seconds, 1),
            **more,
        }
        with whole_file(path) as stream:
            told = {"machine": machine(), "versions": versions(), "runs": dict(sorted(kept.items()))}
            stream.write((json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())


def read_runs(folder: Path) -> dict[str, dict[str, Any]]:
    """{name: date, commit, seconds} of what was measured, empty where nothing was."""
    path = folder / NAME
    runs: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else {}
    return runs


def commit() -> str:
    """The last commit that changed the package, "+" where it was changed since; IMAPCE_COMMIT where there is no git."""
    if told := os.environ.get("IMAPCE_COMMIT"):
        return told
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "src")
    return _git("log", "-1", "--format=%h", "--", "src") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """Cores, processor and memory in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of an {_processor()}, {memory:.0f} GiB, {platform.system()}"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions() -> dict[str, str]:
    """Python and the libraries that figures depend on, where they are installed."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
