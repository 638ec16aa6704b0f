"""The page as a widget of a notebook: the same modules, the same conversation, a comm instead of a socket."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from imapce.app.conversation import Conversation
from imapce.app.exports import export
from imapce.app.messages import Buffer, Content
from imapce.app.study import Study
from imapce.errors import needs
from imapce.exploration.session import Exploration
from imapce.plotting.reports.page import SCRIPTS, SHARED, join_modules
from imapce.tables.encode import column_at, column_names, is_table

with needs("the notebook widget", "imapce[app]"):
    import anywidget

STATIC = Path(__file__).parent / "static"
# Each after those it imports from: a widget takes one module as text, in which relative imports do not resolve.
MODULES = (
    *SHARED,
    *("icons", "link", "turn", "raster", "camera", "overlay", "plot", "tooltip", "tools", "legend", "actions", "why"),
    *("known", "settings", "timeline", "exporting", "keys", "app"),
)


def one_module() -> str:
    """All modules of the instrument joined to one, without the imports between them.

    >>> "import {" in one_module()
    False
    """
    return join_modules((SCRIPTS if name in SHARED else STATIC) / f"{name}.js" for name in MODULES)


class Explorer(anywidget.AnyWidget):
    """What `Exploration.app()` shows: the page over one exploration, which it steers.

    >>> explorer = Explorer(Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> explorer.conversation.scene.kind
    'plain'
    """

    _esm = one_module()
    _css = (STATIC / "app.css").read_text(encoding="utf-8")

    def __init__(self, exploration: Exploration, *, table: Any = None, color: str | None = None):
        super().__init__()
        columns = _arrow(table) if table is not None and is_table(table) else None
        labels = () if color is None else (color,)
        study = Study(
            "Exploration", exploration, features=table, table=columns, labels=labels, color=color, script=("X = ...",)
        )
        self.conversation = Conversation(study, self._tell)
        self.on_msg(self._heard)

    def _heard(self, _: Any, content: Content, buffers: Sequence[Any]) -> None:
        self._tell(*self.conversation.handle(content, [bytes(buffer) for buffer in buffers]))

    def _tell(self, content: Content, buffers: Sequence[Buffer]) -> None:
        self.send(
            content, [buffer.tobytes() if isinstance(buffer, np.ndarray) else bytes(buffer) for buffer in buffers]
        )

    def _repr_mimebundle_(self, **given: Any) -> Any:
        """Beside the widget a picture of the view in sight, for pages on which no kernel lives."""
        bundle = super()._repr_mimebundle_(**given)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            talk = self.conversation
            _, _, picture = export("png", talk.study, talk.scene, talk.colouring())
            data["image/png"] = base64.b64encode(picture).decode()
        return bundle


def _arrow(table: Any) -> pa.Table:
    names = column_names(table, "table")
    return pa.table([column_at(table, place).to_arrow() for place in range(len(names))], names=names)
