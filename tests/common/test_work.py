"""Ctrl-C while something must not be broken off: it waits for the end of the block, and is not lost."""

from __future__ import annotations

import ctypes
import signal
import threading

import pytest

from imapce.common.work import interrupt_held


def test_ctrl_c_in_a_function_that_c_calls_is_told_at_the_end() -> None:
    whole = []

    def work() -> None:
        with interrupt_held():
            # As a library is found by the system's own loader, which calls back for each that it has.
            ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
            whole.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert whole
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_inside_goes_on_and_leaves_ctrl_c_as_it_was() -> None:
    with pytest.raises(ValueError, match="no library"), interrupt_held():
        raise ValueError("no library")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_hear_no_signals_and_are_left_alone() -> None:
    done = []

    def work() -> None:
        with interrupt_held():
            done.append(threading.current_thread().name)

    thread = threading.Thread(target=work, name="beside")
    thread.start()
    thread.join()
    assert done == ["beside"]
