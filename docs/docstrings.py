"""Docstrings as they are written here, turned into Markdown for the API pages.

The house writes `name : meaning` below "Parameters", and examples where they help. A reader of docstrings by one of the
usual rules would take the meaning for a type.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

PARAMETERS = re.compile(r"^Parameters\n-+\n(?P<body>(?:.+\n?)+)", re.MULTILINE)
HEADING_OF_EXAMPLES = re.compile(r"^Examples\n-+\n", re.MULTILINE)
NAMED = re.compile(r"^([\w, ]+) : ", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
# `:func:`name`` and `:class:`~module.Name`` of another markup.
ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
# uns["<key>_colors"]: a browser would take it for an element and show nothing; in code it is shown as it is.
PLACEHOLDER = re.compile(r"(?<!`)<(\w+)>")


class HouseStyle(Extension):
    """Rewrites every docstring before it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = in_markdown(obj.docstring.value)


def in_markdown(text: str) -> str:
    """A docstring with its parameters as a list and its examples as code.

    >>> print(in_markdown("Adds.\\n\\nParameters\\n----------\\na, b : numbers."))
    Adds.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `a, b`: numbers.
    >>> in_markdown('uns["<key>_colors"] and `<LOD>`')
    'uns["&lt;key&gt;_colors"] and `<LOD>`'
    """
    text = PLACEHOLDER.sub(r"&lt;\1&gt;", ROLE.sub(r"`\1`", HEADING_OF_EXAMPLES.sub("", text)))
    text = PARAMETERS.sub(lambda match: "**Parameters**\n\n" + NAMED.sub(r"- `\1`: ", match["body"]), text)
    return EXAMPLE.sub(lambda match: f"```pycon\n{match.group()}\n```", text)
