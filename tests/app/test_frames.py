"""Frames carry words and numbers whole, and refuse what is not one."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imapce.app.messages import pack, unpack
from imapce.errors import FileFormatError


@given(words=st.text(), sizes=st.lists(st.integers(0, 33), max_size=5))
def test_a_message_comes_out_as_it_went_in(words: str, sizes: list[int]) -> None:
    buffers = [bytes(range(size)) for size in sizes]
    assert unpack(pack({"type": words}, buffers)) == ({"type": words}, buffers)


def test_numbers_lie_on_multiples_of_eight() -> None:
    frame = pack({"type": "x"}, [np.arange(3, dtype=np.uint8), np.arange(2.0)])
    (length,) = struct.unpack_from("<I", frame)
    assert (4 + length) % 8 == 0
    assert len(frame) % 8 == 0
    assert frame[4 + length + 8 :] == np.arange(2.0).tobytes()


@pytest.mark.parametrize(
    "frame",
    [b"", b"\x01", b"\xff\xff\xff\xff{}", pack({"a": 1}, [b"12345678"])[:-4], struct.pack("<I", 2) + b"[]",
     struct.pack("<I", 12) + b'{"_b": [-1]}', struct.pack("<I", 10) + b'{"_b": 12}'],
)  # fmt: skip
def test_what_is_no_frame_is_refused_in_one_sentence(frame: bytes) -> None:
    with pytest.raises(FileFormatError, match="a message must be a whole frame"):
        unpack(frame)
