"""Figures as files: the same figure gives the same bytes.

>>> figure_bytes(Figure(), ".png", dpi=50) == figure_bytes(Figure(), ".png", dpi=50)
True
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from imapce.common.whole_files import as_path, whole_file, writable_target
from imapce.errors import InvalidTypeError, InvalidValueError

# Dates are left out of the files, so that the same figure gives the same bytes.
_UNDATED: dict[str, dict[str, Any]] = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}
_svg_lock = threading.Lock()


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: float = 150) -> Path:
    """Save a figure as PNG, PDF or SVG, by the suffix of `path`, and return the path.

    >>> from imapce.plotting import plot_embedding
    >>> save_figure(plot_embedding(np.eye(2)), "view.png", dpi=50).stat().st_size > 0
    True
    """
    figure_target(path)
    target = Path(path)
    content = figure_bytes(figure, target.suffix.lower(), dpi)
    with whole_file(target) as stream:
        stream.write(content)
    return target


def figure_target(path: str | os.PathLike[str]) -> Path:
    """The file that `save_figure` would write, or one sentence on why it could not; for checks ahead of long work.

    >>> figure_target("view.png").name
    'view.png'
    """
    target = as_path(path)
    if target.suffix.lower() not in _UNDATED:
        raise InvalidValueError(
            "path", f"must end in .png, .pdf or .svg, got {target.name!r}; the suffix chooses the format."
        )
    return writable_target(target)


def figure_bytes(figure: Figure, suffix: str, dpi: float) -> bytes:
    """Give the bytes of a figure in the format of a suffix; equal figures give equal bytes.

    >>> figure_bytes(Figure(), ".svg", dpi=100)[:5]
    b'<?xml'
    """
    return drawn_bytes(figure, suffix, dpi)[0]


def drawn_bytes(figure: Figure, suffix: str, dpi: float) -> tuple[bytes, Figure]:
    """Give the bytes of a figure and the copy that was drawn, whose layout tells where things lie on the picture.

    >>> drawn_bytes(Figure(), ".png", dpi=100)[1]
    <Figure size 640x480 with 0 Axes>
    """
    if not isinstance(figure, Figure):
        raise InvalidTypeError(
            f"figure must be a matplotlib Figure, got {type(figure).__name__}; pass what a plot_ function returned."
        )
    if not 10 <= dpi <= 1200:
        raise InvalidValueError(f"dpi must be between 10 and 1200, got {dpi!r}; 150 suits a screen, 300 print.")
    drawn = _undrawn_copy(figure)
    buffer = io.BytesIO()
    with _fixed_svg_ids() if suffix == ".svg" else contextlib.nullcontext():
        drawn.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=_UNDATED[suffix])
    return buffer.getvalue(), drawn


def _undrawn_copy(figure: Figure) -> Figure:
    """Give a copy to draw: every drawing shifts the layout a little, so the next file would differ.

    A figure that pyplot manages is drawn itself, because its copy would turn up in pyplot as a new figure; so
    is one that holds something that cannot be copied.
    """
    if figure.canvas.manager is not None:
        return figure
    try:
        return pickle.loads(pickle.dumps(figure))
    except (pickle.PicklingError, TypeError, AttributeError):
        return figure


@contextlib.contextmanager
def _fixed_svg_ids() -> Iterator[None]:
    """Hold the one setting that matplotlib reads from its globals for SVG ids, and put it back afterwards.

    Only SVG files depend on this setting. Not rc_context, which would put back every other setting too and
    so undo what another thread changed meanwhile.
    """
    with _svg_lock:
        before = matplotlib.rcParams["svg.hashsalt"]
        matplotlib.rcParams["svg.hashsalt"] = "imapce"
        try:
            yield
        finally:
            matplotlib.rcParams["svg.hashsalt"] = before
