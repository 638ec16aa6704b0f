"""Where the rows of a card come from: an array of the card or of the host, or files; read in order and never changed.

Batches of the host go up through pinned memory, so that the next one is brought while the card works on the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from imapce.common.gpu_arrays import is_on_card
from imapce.common.streams import Mask, Places, Portion, Stream, in_order, mask_within

BATCH_BYTES = 128 << 20  # of what is read at once from the source


class Source(Protocol):
    """Rows in a fixed order, from which a card is filled."""

    @property
    def xp(self) -> Any:
        """What computes with the batches: CuPy, or NumPy for the same steps without a card."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def lies_on_card(self) -> bool:
        """Whether the rows take the card's memory already, so that there is nowhere else to read them from."""

    def batches(self, *, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """The rows from `start` to `stop`, in order, where they are computed with; one may overwrite the last."""

    def subset(self, mask: Mask) -> Source:
        """The rows where `mask` is true."""


@dataclass(frozen=True)
class ArraySource:
    """An array of the host or of the card, or some of its rows.

    >>> source = ArraySource(np, np.eye(5)).subset(np.arange(5) != 1)
    >>> source.shape, [len(part) for part in source.batches(start=1)]
    ((4, 5), [3])
    """

    xp: Any
    array: Any
    index: Places | None = None

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.array.shape
        return (n if self.index is None else len(self.index)), d

    @property
    def lies_on_card(self) -> bool:
        return is_on_card(self.array)

    def batches(self, *, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        n, d = self.shape
        step = max(1, BATCH_BYTES // (d * self.array.dtype.itemsize))
        stop = n if stop is None else stop
        slices = (slice(first, min(first + step, stop)) for first in range(start, stop, step))
        return _one_ahead(self.xp, (self._part(here) for here in slices))

    def _part(self, here: slice) -> Any:
        if self.index is None:
            return self.array[here]
        places = self.index[here]
        return self.array[self.xp.asarray(places) if self.lies_on_card else places]

    def subset(self, mask: Mask) -> ArraySource:
        chosen = np.flatnonzero(mask)
        return ArraySource(self.xp, self.array, chosen if self.index is None else self.index[chosen])


@dataclass(frozen=True)
class StreamSource:
    """Files, or some of their rows: every call of `batches` reads them from their beginning.

    >>> from imapce.common.streams import Portion, Stream
    >>> class Twice(Stream):
    ...     shape = (4, 1)
    ...     def portions(self, columns=None):
    ...         for X in ([[1.0], [2.0]], [[3.0], [4.0]]):
    ...             yield Portion(2, lambda places, X=np.array(X): iter([X if places is None else X[places]]))
    >>> [part.tolist() for part in StreamSource(np, Twice()).batches(start=1)]
    [[[2.0]], [[3.0], [4.0]]]
    """

    xp: Any
    stream: Stream
    mask: Mask | None = None

    @property
    def lies_on_card(self) -> bool:
        return False

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.stream.shape
        return (n if self.mask is None else int(self.mask.sum())), d

    def batches(self, *, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        stop = self.shape[0] if stop is None else stop
        # Threads make numbers of the portions; the card waits for the disk and for them, not for copies.
        return _one_ahead(self.xp, in_order(_array_of, self._wanted(start, stop)))

    def _wanted(self, start: int, stop: int) -> Iterator[tuple[Portion, Places, int]]:
        """Every portion that holds some of the rows from `start` to `stop`, and which of its own those are."""
        read = taken = 0
        n, d = self.shape
        for portion in self.stream.portions():
            here = slice(read, read + portion.n_rows)
            places = np.arange(portion.n_rows) if self.mask is None else np.flatnonzero(self.mask[here])
            inside = places[max(start - taken, 0) : max(stop - taken, 0)]
            read, taken = read + portion.n_rows, taken + len(places)
            if len(inside):
                yield portion, inside, d
            # What is read to its end is checked there: whether files were changed, or hold other rows than they said.
            if stop < n and taken >= stop:
                return

    def subset(self, mask: Mask) -> StreamSource:
        return StreamSource(self.xp, self.stream, mask_within(self.mask, mask))


def _array_of(wanted: tuple[Portion, Places, int]) -> Any:
    """The rows asked for of a portion, whose own blocks may overwrite each other."""
    portion, inside, d = wanted
    array, filled = np.empty((len(inside), d)), 0
    for block in portion.blocks(None if len(inside) == portion.n_rows else inside):
        array[filled : filled + len(block)] = block
        filled += len(block)
    return array


def _one_ahead(xp: Any, parts: Iterator[Any]) -> Iterator[Any]:
    """The parts on the card, each brought there while the one before is worked on: such copies do not wait for it."""
    ahead = None
    for part in parts:
        now, ahead = ahead, _on_card(xp, part)
        if now is not None:
            yield now
    if ahead is not None:
        yield ahead


def _on_card(xp: Any, part: Any) -> Any:
    if xp is np or is_on_card(part):
        return part
    pinned = xp.cuda.alloc_pinned_memory(part.nbytes)
    held = np.frombuffer(pinned, part.dtype, part.size).reshape(part.shape)
    np.copyto(held, part)
    on_card = xp.empty(part.shape, dtype=part.dtype)
    on_card.set(held)
    return on_card
