"""Figures that show themselves in a notebook, once and with or without pyplot, and the files they become.

A figure is made without pyplot, so that servers and threads can make them, and has an image for IPython. Where pyplot
is loaded and has somewhere to show figures (a notebook or windows), it manages them as its own: `plt.show()` shows
them. What a cell has shown as its result is closed, or pyplot would show it once more at the end of the cell. The same
figure gives the same bytes in a file.

>>> Figure(figsize=(2, 1))
<Figure size 200x100 with 0 Axes>
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as PlainFigure

from imapce.common.whole_files import as_path, whole_file, writable_target
from imapce.errors import InvalidTypeError, InvalidValueError

# Backends that draw into files alone.
FILES_ONLY = frozenset(("agg", "cairo", "pdf", "pgf", "ps", "svg", "template"))
NOTEBOOK_DPI = 100.0
# pyplot keeps what it manages until it is closed, and warns from here on.
MOST_OPEN = 20

_for_a_file: ContextVar[bool] = ContextVar("figures are for a file", default=False)
_open: list[weakref.ref[Figure]] = []
# Dates are left out of the files, so that the same figure gives the same bytes.
_UNDATED: dict[str, dict[str, Any]] = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}
_svg_lock = threading.Lock()


class Figure(PlainFigure):
    """A matplotlib Figure that is an image in a notebook and can be shown without pyplot."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, bytes]:
        """The image, unless IPython has been told how to draw figures."""
        if _in_notebook():
            _close(self)
        return {} if _ipython_draws_figures() else {"image/png": figure_bytes(self, ".png", NOTEBOOK_DPI)}

    def show(self, warn: bool = True) -> None:
        """The image in a notebook, elsewhere a window, where matplotlib has one."""
        if _in_notebook():
            from IPython.display import display

            display(self)
            return
        if self.canvas.manager is None:
            import matplotlib.pyplot as plt

            # The canvas of the backend at hand makes the manager, as pyplot itself does for its figures.
            canvas: Any = type(plt.figure().canvas)
            plt.close()
            canvas.new_manager(self, 0)
        super().show(warn)


def new_page(**settings: Any) -> Figure:
    """A figure with matplotlib's `settings`, managed by pyplot where that could show it.

    >>> new_page(figsize=(2, 1)).canvas.manager is None
    True
    """
    plt: Any = sys.modules.get("matplotlib.pyplot")
    here = threading.current_thread() is threading.main_thread()
    if plt is None or not here or _for_a_file.get() or matplotlib.get_backend().lower() in FILES_ONLY:
        return Figure(**settings)
    _open[:] = [reference for reference in _open if _is_managed(reference())]
    while len(_open) >= MOST_OPEN:
        _close(_open.pop(0)())
    figure: Figure = plt.figure(FigureClass=Figure, **settings)
    _open.append(weakref.ref(figure))
    return figure


@contextmanager
def for_a_file() -> Iterator[None]:
    """While figures are made to be written, not to be shown; pyplot is not told of them.

    >>> with for_a_file():
    ...     figure = new_page()
    """
    before = _for_a_file.set(True)
    try:
        yield
    finally:
        _for_a_file.reset(before)


def _is_managed(figure: Figure | None) -> bool:
    return (
        figure is not None
        and figure.canvas.manager is not None
        and sys.modules["matplotlib.pyplot"].fignum_exists(figure.number)
    )


def _close(figure: Figure | None) -> None:
    if figure is not None and figure.canvas.manager is not None:
        sys.modules["matplotlib.pyplot"].close(figure)


def _shell() -> Any:
    """IPython's shell, or None where there is none."""
    ipython: Any = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _in_notebook() -> bool:
    return hasattr(_shell(), "kernel")


def _ipython_draws_figures() -> bool:
    """Whether a way to draw figures is registered, as `%matplotlib inline` and pyplot's first figure do."""
    shell = _shell()
    formatters = {} if shell is None else shell.display_formatter.formatters
    return any(
        PlainFigure in formatter.type_printers for name, formatter in formatters.items() if name.startswith("image/")
    )


def save_figure(figure: PlainFigure, path: str | os.PathLike[str], dpi: float = 150) -> Path:
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


def figure_bytes(figure: PlainFigure, suffix: str, dpi: float) -> bytes:
    """Give the bytes of a figure in the format of a suffix; equal figures give equal bytes.

    >>> figure_bytes(Figure(), ".svg", dpi=100)[:5]
    b'<?xml'
    """
    _require_figure(figure, dpi)
    buffer = io.BytesIO()
    with _fixed_svg_ids() if suffix == ".svg" else nullcontext():
        _undrawn_copy(figure).savefig(buffer, format=suffix[1:], dpi=dpi, metadata=_UNDATED[suffix])
    return buffer.getvalue()


def drawn_pixels(figure: PlainFigure, dpi: float, *, once: bool = False) -> tuple[Any, PlainFigure]:
    """Give the pixels (height, width, RGB) of a figure and what was drawn, whose layout tells what lies where.

    That is a copy, unless the figure is drawn `once` and never again. One drawing finds the layout and draws: half the
    time of a file, which is drawn twice.

    >>> drawn_pixels(Figure(figsize=(2, 1)), dpi=100)[0].shape
    (100, 200, 3)
    """
    _require_figure(figure, dpi)
    drawn = figure if once else _undrawn_copy(figure)
    drawn.set_dpi(dpi)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3], drawn


def _require_figure(figure: Any, dpi: float) -> None:
    if not isinstance(figure, PlainFigure):
        raise InvalidTypeError(
            f"figure must be a matplotlib Figure, got {type(figure).__name__}; pass what a plot_ function returned."
        )
    if not 10 <= dpi <= 1200:
        raise InvalidValueError(f"dpi must be between 10 and 1200, got {dpi!r}; 150 suits a screen, 300 print.")


def _undrawn_copy(figure: PlainFigure) -> PlainFigure:
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


@contextmanager
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
