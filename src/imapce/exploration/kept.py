"""A session and its file: saved, kept after every move, and gone on with on another day."""

from __future__ import annotations

import os
from typing import Any, Self

from imapce.errors import InvalidValueError
from imapce.exploration.own_file import OwnFile, require_new, write_elsewhere
from imapce.exploration.session_file import not_whole, read_session
from imapce.exploration.state import Session
from imapce.tables.reader import Reader


class KeptSession(Session):
    """A session that can be written and read back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session (JSON and .npy in one zip), whole or not at all; not where another process writes."""
        if self._own_file is not None and self._own_file.is_at(path):
            self._own_file.write(self.record())
        else:
            write_elsewhere(path, self.record())

    def keep_in(self, path: str | os.PathLike[str] | None) -> None:
        """From now on keep the session in this new file, rewritten after every move; None keeps it in none.

        >>> from imapce import Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(50, 4)), random_state=0)
        >>> exploration.keep_in("session.imapce")
        >>> exploration.path
        'session.imapce'
        """
        require_new(path)
        self._own_file = None if path is None else OwnFile(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any, *, autosave: bool = True, row_ids: Any = None) -> Self:
        """A saved session on the same data; other data is refused by the name of what differs.

        With `autosave` the file goes on being rewritten after every accept and undo, and while the session lives no
        other process may do the same; a session of this process that finds it changed is refused. Names of rows come
        with the data, not from the file: from `row_ids` or the table's index.
        """
        # Claimed before it is read: what is read is then what the next write replaces.
        own_file = OwnFile(path) if autosave and path is not None else None
        record = read_session(path)
        try:
            session = cls.of_record(record, X, row_ids=row_ids)
        except InvalidValueError:
            raise
        except (TypeError, ValueError) as error:
            # The same kinds of error come from an X that cannot be read, and that is not the file's fault.
            Reader.learn(X, missing="mean")
            raise not_whole(path, error) from error
        session._own_file = own_file
        return session
