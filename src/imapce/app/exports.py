"""What a page hands out: tables, figures, the report, the session and the Python that leads to the same state."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from imapce.app.colours import Colouring
from imapce.app.scene import Scene
from imapce.app.script import as_python
from imapce.app.study import Study
from imapce.common.words import axis_names
from imapce.errors import InvalidValueError
from imapce.tables.encode import column_names
from imapce.tables.files import write_table

MEDIA = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
    "svg": "image/svg+xml",
    "report": "text/html",
    "session": "application/zip",
    "python": "text/x-python",
}
SUFFIX = {"report": ".html", "session": ".imapce", "python": ".py"}


def exported(kind: str, study: Study, scene: Scene, colouring: Colouring) -> tuple[str, str, bytes]:
    """Name, media type and bytes of one of the things in `MEDIA`."""
    if kind not in MEDIA:
        raise InvalidValueError(f"what is exported must be one of {', '.join(MEDIA)}; got {kind!r}.")
    stem = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in Path(study.name).stem) or "rows"
    name = f"{stem}{'-clusters' if kind in ('csv', 'parquet') else ''}{SUFFIX.get(kind, '.' + kind)}"
    if kind == "python":
        return name, MEDIA[kind], as_python(study).encode()
    with tempfile.TemporaryDirectory(prefix="imapce-export-") as folder:
        target = Path(folder) / name
        if kind in ("csv", "parquet"):
            write_table(clusters_and_coordinates(study, scene), target)
        elif kind in ("png", "svg"):
            _figure(study, scene, colouring, target)
        elif kind == "report":
            labels = study.columns.values(study.labels[0]) if study.labels else None
            study.exploration.report(target, labels=labels, title=f"Exploration of {study.name}")
        else:
            study.exploration.save(target)
        return name, MEDIA[kind], target.read_bytes()


def clusters_and_coordinates(study: Study, scene: Scene) -> dict[str, Any]:
    """The columns of `Exploration.to_frame`, the name of every cluster, and where rows lie in the view in sight."""
    frame = study.exploration.to_frame()
    columns: dict[str, Any] = {name: np.asarray(frame[name]) for name in column_names(frame, "the result")}
    for name, values in zip(axis_names(scene.n_axes), scene.coordinates.T, strict=True):
        columns[f"view_{name}"] = values
    return columns


def _figure(study: Study, scene: Scene, colouring: Colouring, target: Path) -> None:
    """The view in sight, in its colours."""
    from imapce.plotting import plot_embedding, save_figure

    names = [_axis_name(place, axis) for place, axis in enumerate(scene.axes(study.exploration.feature_names))]
    color: Any
    if colouring.by.startswith("column:"):
        color, color_name = study.columns.values(colouring.title), colouring.title
    else:
        by_code: dict[int, str] = {}
        for entry in colouring.legend:
            # After 24 clusters colours repeat, and so do they in the figure.
            code, name = entry["code"], entry["name"]
            by_code[code] = f"{by_code[code]}, {name}" if code in by_code else name
        color, color_name = np.array([by_code.get(code, "") for code in colouring.codes.tolist()]), colouring.title
    known = scene.known if colouring.by == "cluster" and scene.known.any() else None
    save_figure(
        plot_embedding(scene.coordinates, color=color, color_name=color_name, known=known, axis_names=names), target
    )


def _axis_name(place: int, axis: dict[str, Any]) -> str:
    parts = [f"{'−' if one['weight'] < 0 else '+'}{one['name']}" for one in axis["features"]]
    return f"imapce{place}: {' '.join(parts)}" if parts else f"imapce{place}"
