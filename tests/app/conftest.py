"""What all tests of the page share: one browser, and servers that nobody but the page of a test leaves a trace on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conversation import write_groups
from served import Browser, Server, served

BROWSER = Browser()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """The browser ends with the last test of this folder: others may need an event loop of their own."""
    yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        BROWSER.close()


@pytest.fixture
def somebody() -> Iterator[Callable[..., Any]]:
    """Makes people, each with a browser of their own; they are gone after the test."""
    here: list[Any] = []

    def come(**settings: Any) -> Any:
        here.append(BROWSER.context(**settings))
        return here[-1]

    yield come
    for one in here:
        one.close()


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the start page; every browser has a session of its own."""
    with served(cwd=tmp_path_factory.mktemp("start")) as running:
        yield running


@pytest.fixture(scope="session")
def three_groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of three groups with their names as a label; every browser has a session of its own."""
    folder = tmp_path_factory.mktemp("three")
    data = write_groups(folder / "groups.csv")
    with served(data, "--labels", "kind", cwd=folder) as running:
        yield running
