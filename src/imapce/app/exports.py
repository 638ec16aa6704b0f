"""What a page hands out: tables, figures, the report, the session and the Python that leads to the same state."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imapce.app.colours import Colouring
from imapce.app.scene import Scene
from imapce.app.study import Study
from imapce.common.axes import axis_in_words
from imapce.common.words import axis_names
from imapce.errors import InvalidValueError
from imapce.exploration.record import AcceptedStep, Move, TakenCluster, clusters_after
from imapce.plotting import plot_embedding, save_figure
from imapce.priors.kinds import rows_in_python
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
HEAD = "# The exploration as it stood on the page of imapce app."
_DEFAULTS: dict[str, Any] = {"alpha": "auto", "mu": "auto", "missing": "error", "n_components": 2}


def export(kind: str, study: Study, scene: Scene, colouring: Colouring) -> tuple[str, str, bytes]:
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
            write_table(_clusters_and_coordinates(study, scene), target)
        elif kind in ("png", "svg"):
            _figure(study, scene, colouring, target)
        elif kind == "report":
            labels = study.columns.values(study.labels[0]) if study.labels else None
            study.exploration.report(target, labels=labels, title=f"Exploration of {study.name}")
        else:
            study.exploration.save(target)
        return name, MEDIA[kind], target.read_bytes()


def _clusters_and_coordinates(study: Study, scene: Scene) -> dict[str, Any]:
    """The columns of `Exploration.to_frame`, the name of every cluster, and where rows lie in the view in sight."""
    frame = study.exploration.to_frame()
    columns: dict[str, Any] = {name: np.asarray(frame[name]) for name in column_names(frame, "the result")}
    for name, values in zip(axis_names(scene.n_axes), scene.coordinates.T, strict=True):
        columns[f"view_{name}"] = values
    return columns


def _figure(study: Study, scene: Scene, colouring: Colouring, target: Path) -> None:
    """The view in sight, in its colours."""
    axes = scene.axes(study.exploration.feature_names)
    made = [[(one["name"], one["weight"]) for one in axis["features"]] for axis in axes]
    told = [axis_in_words(features, axis["given"]) for features, axis in zip(made, axes, strict=True)]
    names = [words or name for words, name in zip(told, axis_names(len(told)), strict=True)]
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
    about: Any = {"title": scene.title, "subtitle": study.exploration.known_in_a_line, "axis_names": names}
    save_figure(plot_embedding(scene.coordinates, color=color, color_name=color_name, known=known, **about), target)


def as_python(study: Study) -> str:
    """A script whose `exploration` ends with the same `labels_`.

    Moves that the library would make again by itself are written as such; rows that were chosen by hand are named.

    >>> from imapce import Exploration
    >>> study = Study("noise", Exploration(np.zeros((3, 3)) + np.eye(3), random_state=0), script=("X = ...",))
    >>> as_python(study).splitlines()[-1]
    'exploration = Exploration(X, random_state=0)'
    """
    exploration = study.exploration
    arguments, known = ["X"], list[str]()
    if exploration.priors:
        background = "..." if study.background is None else f"imapce.tables.read_table({study.background!r})"
        known = [
            study.by_column(prior).python(background=background, labels=study.labelled) for prior in exploration.priors
        ]
        arguments.append(f"prior=[{', '.join(known)}]")
    model = exploration.parameters
    changed = {key: model[key] for key, usual in _DEFAULTS.items() if model[key] != usual}
    if changed:
        settings = ", ".join(f"{key}={value!r}" for key, value in {"outliers": model["outliers"], **changed}.items())
        arguments.append(f"estimator=IMAPCE({settings})")
    if exploration.granularity != "auto":
        arguments.append(f"granularity={exploration.granularity!r}")
    if transform := exploration.found.data.reader.transform:
        arguments.append(f"transform={transform!r}")
    if exploration.n_clusters is not None:
        arguments.append(f"n_clusters={exploration.n_clusters}")
    arguments.append(f"random_state={exploration.random_state}")
    names = sorted({"Exploration", *(words.partition("(")[0] for words in known), *(["IMAPCE"] if changed else [])})
    lines = [HEAD, "import numpy as np", "import imapce", f"from imapce import {', '.join(names)}", "", *study.script]
    lines.append(f"exploration = Exploration({', '.join(arguments)})")
    if exploration.ignores_structure:
        lines.append('exploration.go_on_with(structure="ignore")')
    lines += _moves_in_python(exploration.moves, study.settled_at, exploration.record().numbers)
    return "\n".join(lines) + "\n"


def _moves_in_python(moves: Sequence[Move], settled_at: int, numbers: tuple[int, int] | None) -> list[str]:
    """Lines that lead to the clusters of these moves, of which the first so many were made with other settings.

    Those are written as the clusters they led to: other settings would propose and split otherwise. After them, a step
    is left to the library where everything before it was written step by step, since every step has its own seed, and
    where clusters found at the start get the same `numbers` again.
    """
    before, after = moves[:settled_at], moves[settled_at:]
    taken = clusters_after(before)
    lines = [_by_hand(cluster) for cluster in taken]
    if before:
        lines.append("exploration.go_on_with()")
    steps = [move for move in before if isinstance(move, AcceptedStep)]
    same = len(taken) == len(steps) and not any(move.pieces for move in before if not isinstance(move, AcceptedStep))
    if numbers is not None and after:
        same = same and numbers[0] == 1 + max((cluster.number for cluster in taken), default=-1)
        if same and any(cluster.distinctness is None for cluster in after[0].clusters):
            # Rows by hand have numbers after those of the clusters that were in sight.
            lines.append("exploration.propose()")
    for move in after:
        if isinstance(move, AcceptedStep):
            automatic = move.view == 0 and all(cluster.chosen == "automatic" for cluster in move.clusters)
            name = next((cluster.name for cluster in move.clusters if cluster.name), None)
            if same and automatic:
                lines.append(f"exploration.accept({'' if name is None else f'name={name!r}'})")
            else:
                lines += [_by_hand(cluster) for cluster in move.clusters]
                same = same and len(move.clusters) == 1
        elif move.kind == "merge":
            lines.append(f"exploration.merge({list(move.replaced)})")
        elif move.kind == "consolidate":
            lines.append("exploration.consolidate()")
        elif move.replaced:
            # Whether or not it was more than chance: it was done.
            lines.append(f'exploration.split({move.replaced[0]}, structure="ignore")')
        else:
            # Pieces of a cluster that was not taken show in proposals alone; what is taken of them follows by its rows.
            lines.append(f"# {move.words}")
            same = False
    return lines


def _by_hand(cluster: TakenCluster) -> str:
    name = "" if cluster.name is None else f", name={cluster.name!r}"
    return f"exploration.accept(mask={rows_in_python(cluster.rows)}, number={cluster.number}{name})"
