"""One person's session is not another's; a tab that is closed is freed and comes back from its file."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from conversation import groups, write_groups
from imapce import Exploration
from imapce.app.study import Study
from imapce.app.tabs import Tabs
from served import Server, click, opened, served, settled, taken


def tabs_in(folder: Path, file: Path | None = None) -> Tabs:
    X = groups()
    return Tabs(Study("groups", Exploration(X, random_state=0), features=X), folder, file=file)


def listen(content: object, buffers: object) -> None:
    """A page that hears everything and says nothing."""


def take(tab: object) -> None:
    session = tab.conversation  # type: ignore[attr-defined]
    assert "error" not in session.handle({"type": "take", "what": "most", "id": 1})[0]
    assert session.wait(60)


def test_two_browsers_do_not_see_each_other(tmp_path: Path) -> None:
    both = tabs_in(tmp_path)
    mine, yours = both.tab(None, "me"), both.tab(None, "you")
    take(mine)
    assert len(mine.conversation.exploration.steps) == 1
    assert yours.conversation.exploration.steps == []
    assert both.tab(mine.key, "you").conversation.exploration.steps == []
    assert both.held(mine.key, "me") is mine
    assert both.held(mine.key, "you") is None
    assert both.held(None, "me") is None


def test_rows_are_shared_and_steps_are_not(tmp_path: Path) -> None:
    both = tabs_in(tmp_path)
    mine, yours = (both.tab(None, who).conversation.study for who in ("me", "you"))
    assert mine.plain is yours.plain
    assert mine.order is yours.order
    assert mine.exploration is not yours.exploration
    mine.exploration.propose()
    assert yours.exploration.proposal is None
    assert both.tab(None, "they").conversation.exploration.proposal is None


def test_a_tab_in_use_is_not_given_to_another_and_one_left_alone_is(tmp_path: Path) -> None:
    open_tabs = tabs_in(tmp_path)
    first = open_tabs.tab(None, "me")
    first.attach(listen)
    second = open_tabs.tab(None, "me")
    assert second is not first
    first.detach(listen)
    assert open_tabs.tab("unknown", "me") is first


def test_a_freed_tab_comes_back_from_its_file(tmp_path: Path) -> None:
    some = tabs_in(tmp_path)
    tab = some.tab(None, "me")
    take(tab)
    labels = tab.conversation.exploration.labels_.copy()
    some.free(tab)
    assert some.open_tabs == 0
    again = some.tab(tab.key, "me")
    assert again is not tab
    np.testing.assert_array_equal(again.conversation.exploration.labels_, labels)


def test_a_freed_session_holds_no_memory_until_some_later_collection(tmp_path: Path) -> None:
    some = tabs_in(tmp_path)
    tab = some.tab(None, "me")
    take(tab)
    for thread in threading.enumerate():
        if thread.name.startswith("imapce"):
            thread.join(60)
    session, explored = weakref.ref(tab.conversation), weakref.ref(tab.conversation.exploration)
    gc.disable()
    try:
        some.free(tab)
        assert session() is None
        assert explored() is None
    finally:
        gc.enable()


def test_a_data_set_of_the_start_page_comes_back_with_its_work_and_its_settings(tmp_path: Path) -> None:
    some = Tabs(None, tmp_path)
    tab = some.tab(None, "me")
    assert tab.handle({"type": "open", "dataset": "synthetic", "id": 1})[0]["open"]
    take(tab)
    tab.conversation.handle({"type": "settings", "columns": {"batch": False}, "mu": 9.0, "id": 2})
    assert tab.conversation.wait(60)
    labels = tab.conversation.exploration.labels_.copy()
    some.free(tab)
    assert some.tab(None, "you").conversation is None
    again = some.tab(None, "me")
    assert again.key == tab.key
    np.testing.assert_array_equal(again.conversation.exploration.labels_, labels)
    assert again.conversation.study.known_by_column == {"batch": "explained away"}
    assert again.conversation.exploration.parameters["mu"] == 9.0


def test_a_tab_that_is_looked_at_is_not_freed(tmp_path: Path) -> None:
    some = tabs_in(tmp_path)
    tab = some.tab(None, "me")
    tab.attach(listen)
    some.free(tab)
    assert some.open_tabs == 1


def test_the_file_of_the_command_line_has_one_writer_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "session.imapce"
    some = tabs_in(tmp_path, file)
    first, second = some.tab(None, "me"), some.tab(None, "you")
    assert Path(first.conversation.exploration.path) == file
    assert Path(second.conversation.exploration.path) != file
    assert any("open in another tab" in note for note in second.conversation.study.notes)
    take(first)
    take(second)
    some.free(first)
    third = some.tab(None, "they")
    assert Path(third.conversation.exploration.path) == file
    assert len(third.conversation.exploration.steps) == 1


def test_two_browsers_and_a_tab_that_is_closed_and_opened_again(three_groups: Server, somebody: Any) -> None:
    mine, yours = somebody(), somebody()
    page, watched = opened(mine, three_groups)
    click(page, "Next view")
    click(page, "Take most distinct")
    other, _ = opened(yours, three_groups)
    assert (taken(page).count(), taken(other).count()) == (1, 0)
    # Closed and opened again, and reloaded: the same work.
    page.close()
    page, watched = opened(mine, three_groups)
    assert taken(page).count() == 1
    page.reload()
    settled(page)
    assert taken(page).count() == 1
    watched.nothing_wrong()


def test_a_page_whose_server_died_goes_on_by_itself_when_it_is_back(somebody: Any, tmp_path: Path) -> None:
    data, session = write_groups(tmp_path / "groups.csv"), tmp_path / "session.imapce"
    arguments = [data, "--labels", "kind", "--session", session]
    with served(*arguments, cwd=tmp_path, token="a secret of my own") as server:
        page, _ = opened(somebody(), server)
        click(page, "Next view")
        click(page, "Take most distinct")
        steps = taken(page).all_text_contents()
        server.kill()
        page.locator(".lost:visible").wait_for()
    with served(*arguments, "--port", str(server.port), cwd=tmp_path, token="a secret of my own"):
        page.locator(".lost").wait_for(state="hidden")
        settled(page)
        assert taken(page).all_text_contents() == steps
        click(page, "Undo")
        assert taken(page).count() == 0
