"""Figures that show themselves in a notebook, with or without pyplot and `%matplotlib inline`, and once.

A figure is made without pyplot, so that servers and threads can make them, and has an image for IPython. Where pyplot
is loaded and has somewhere to show figures (a notebook or windows), it manages them as its own: `plt.show()` shows
them. What a cell has shown as its result is closed, or pyplot would show it once more at the end of the cell.

>>> Figure(figsize=(2, 1))
<Figure size 200x100 with 0 Axes>
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import matplotlib
from matplotlib.figure import Figure as PlainFigure

from imapce.plotting.files import figure_bytes

# Backends that draw into files alone.
FILES_ONLY = frozenset(("agg", "cairo", "pdf", "pgf", "ps", "svg", "template"))
NOTEBOOK_DPI = 100.0
# pyplot keeps what it manages until it is closed, and warns from here on.
MOST_OPEN = 20

_for_a_file: ContextVar[bool] = ContextVar("figures are for a file", default=False)
_open: list[weakref.ref[Figure]] = []


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
    _open[:] = [one for one in _open if _is_managed(one())]
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
    return any(PlainFigure in one.type_printers for name, one in formatters.items() if name.startswith("image/"))
