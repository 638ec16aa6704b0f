"""How long work is watched and stopped from outside: one callable for progress, one that says whether to go on.

Work tells what it does in words and, where that is known, which share of it is done. It knows no screen: a terminal, a
page and a notebook each bring their own callables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from imapce.errors import CancelledError, InvalidTypeError

Tell = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Watch:
    """Who is told of progress, `progress(words, share)`, and who may end the work, `cancel() -> bool`.

    >>> seen = []
    >>> Watch(progress=lambda words, share: seen.append(words)).tell("fitting")
    >>> seen
    ['fitting']
    """

    progress: Tell | None = None
    cancel: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        for name, given in (("progress", self.progress), ("cancel", self.cancel)):
            if given is not None and not callable(given):
                raise InvalidTypeError(name, "must be None or a function", f"{given!r:.80}")

    def tell(self, words: str, share: float | None = None) -> None:
        """Say what is being done; raises CancelledError where the work is to end."""
        if self.cancel is not None and self.cancel():
            raise CancelledError(f"cancelled while {words}; nothing was changed.")
        if self.progress is not None:
            self.progress(words, share)


UNWATCHED = Watch()
