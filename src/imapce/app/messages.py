"""Messages between a page and Python, and the frames they travel in: a JSON header and numbers as bytes.

    u32 length of the header | header, JSON, padded to 8 | buffers, each padded to 8

The header holds the sizes of the buffers in `_b`. Padding lets a browser lay typed arrays over the bytes and copy none.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from imapce.errors import FileFormatError

Content = dict[str, Any]
Buffer = bytes | memoryview | np.ndarray
Reply = tuple[Content, Sequence[Buffer]]
Send = Callable[[Content, Sequence[Buffer]], None]

PAD = 8
MOST_BUFFERS = 64


def pack(content: Content, buffers: Sequence[Buffer] = ()) -> bytes:
    """One frame of a message.

    >>> pack({"type": "hello"})[4:].decode().split("}")[0]
    '{"type":"hello","_b":[]'
    """
    parts = [_bytes_of(buffer) for buffer in buffers]
    header = json.dumps(
        {**content, "_b": [len(part) for part in parts]}, separators=(",", ":"), allow_nan=False
    ).encode()
    header += b" " * (-(len(header) + 4) % PAD)
    frame: list[bytes | memoryview] = [struct.pack("<I", len(header)), header]
    for part in parts:
        frame += [part, b"\0" * (-len(part) % PAD)]
    return b"".join(frame)


def unpack(frame: bytes) -> tuple[Content, list[bytes]]:
    """The message in a frame; anything else is refused in one sentence.

    >>> unpack(pack({"type": "lasso"}, [np.arange(2.0)]))[1][0] == np.arange(2.0).tobytes()
    True
    """
    try:
        (length,) = struct.unpack_from("<I", frame)
        if 4 + length > len(frame):
            raise ValueError("it is cut short")
        content = json.loads(frame[4 : 4 + length])
        sizes = content.pop("_b", [])
        if not all(isinstance(size, int) and size >= 0 for size in sizes) or len(sizes) > MOST_BUFFERS:
            raise ValueError("its sizes are no whole numbers")
        place, buffers = 4 + length, []
        for size in sizes:
            if place + size > len(frame):
                raise ValueError("it is cut short")
            buffers.append(bytes(frame[place : place + size]))
            place += size + (-size % PAD)
    except (struct.error, ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise FileFormatError(
            f"a message must be a whole frame, and this one is not ({problem}): reload the page."
        ) from problem
    return content, buffers


def _bytes_of(buffer: Buffer) -> bytes | memoryview:
    if isinstance(buffer, np.ndarray):
        return np.ascontiguousarray(buffer).data.cast("B") if buffer.size else b""
    return buffer
