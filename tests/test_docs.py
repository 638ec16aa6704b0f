"""The guide: all code in it and in README.md runs, and the site is built without a warning and without a net.

The code runs as the site runs it, by `docs/snippets.py`: page by page, in an empty folder, warnings as errors.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import io
import re
import socket
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from browser import chromium_or_skip

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

import snippets  # noqa: E402

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
WITH_CODE = [page for page in PAGES if any(snippets.blocks(page.read_text(encoding="utf-8")))]
ANY_FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LONGEST_LINE = 88
EXTERNAL = re.compile(
    r"""(?:src|href|srcset)=["']?(?:https?:)?//[^"' >]+\.(?:js|css|woff2?|png|svg)|@import|url\(["']?http"""
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module", autouse=True)
def _needs_pandas() -> None:
    pytest.importorskip("pandas", reason="the guide shows tables of pandas")


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs(page: Path) -> None:
    for library, extra in (("anndata", "anndata"), ("dask", "dask"), ("scanpy", "dev")):
        if f"import {library}" in page.read_text(encoding="utf-8") and importlib.util.find_spec(library) is None:
            pytest.skip(f"the page needs the extra {extra}")
    outcome = snippets.run(page)
    assert len(outcome.outputs) == len(list(snippets.blocks(page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_that_does_not_run_is_not_shown_as_code(page: Path) -> None:
    for indent, language, code in ANY_FENCE.findall(page.read_text(encoding="utf-8")):
        assert not indent, f"{name_of(page)}: an indented block does not run: {code}"
        assert language in ("python", "sh", "text", "bibtex", ""), f"{name_of(page)}: {language} does not run"
        if language not in snippets.RUN:
            # The tour writes where the reader stands, and the app serves until it is stopped.
            told = re.search(r"^(import|from) |^imapce (?!demo|app)", code, re.MULTILINE)
            assert not told, f"{name_of(page)}: {code}"


@pytest.mark.parametrize("page", PAGES[1:], ids=name_of)
def test_code_fits_the_width_of_a_page(page: Path) -> None:
    for _, _, code in ANY_FENCE.findall(page.read_text(encoding="utf-8")):
        assert max(map(len, code.splitlines()), default=0) <= LONGEST_LINE, code


def test_code_that_fails_or_warns_is_found(tmp_path: Path) -> None:
    faults = {
        "raise": "```python\nraise KeyError('batch')\n```\n",
        "warn": "```python\nimport warnings\nwarnings.warn('old')\n```\n",
        "shell": "```sh\nimapce embed absent.csv\n```\n",
        "pipe": "```sh\ncat absent.csv | imapce embed -\n```\n",
    }
    for name, text in faults.items():
        page = tmp_path / f"{name}.md"
        page.write_text(text, encoding="utf-8")
        with pytest.raises((KeyError, UserWarning, RuntimeError)):
            snippets.run(page)


def test_a_page_shows_what_came_of_its_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint('seen')\n```\n\n```python\n6 * 7\n```\n\n```sh\nimapce --version\n```\n", encoding="utf-8"
    )
    assert [output.split()[0] for output in snippets.run(page).outputs] == ["seen", "42", "imapce"]


@pytest.mark.parametrize(("module", "library"), [("snippets", "typer"), ("docstrings", "griffe"), ("hooks", "mkdocs")])
def test_the_examples_of_what_makes_the_site_run(module: str, library: str) -> None:
    pytest.importorskip(library, reason="the site needs the extra `docs`")
    done = doctest.testmod(importlib.import_module(module))
    assert done.attempted
    assert not done.failed


def test_the_picture_of_the_readme_is_the_one_its_code_makes() -> None:
    made = imread(io.BytesIO(snippets.run(ROOT / "README.md").files["synthetic.png"]))
    kept = imread(DOCS / "images" / "synthetic.png")
    assert made.shape == kept.shape
    # Other fonts move a few pixels of the text; another picture moves most of them.
    assert np.mean(np.abs(made - kept) > 0.1) < 0.03


@pytest.mark.parametrize("page", sorted((DOCS / "rooms").glob("*.md")), ids=name_of)
def test_every_file_that_a_room_names_is_there(page: Path) -> None:
    house = ROOT / "src" / "imapce"
    for file in re.findall(r"`((?:\w+/)*\w+\.py)`", page.read_text(encoding="utf-8")):
        assert (house / file).is_file() or (house / page.stem / file).is_file(), file


def test_what_it_cannot_do_still_comes_out_as_the_page_says() -> None:
    told = "\n".join(snippets.run(DOCS / "what-it-cannot-do.md").outputs)
    for words in (
        "clear, 8 clusters",  # moons in pieces
        "tables with the same distances from the mean show as much",  # rings
        "3 separate groups",  # a parabola
        "clear, 20 clusters",
        "day known: none, 0 clusters, agreement with the kind 0.00",
        "45 rows: none, 0 clusters",
        "150 rows: clear, 3 clusters",
    ):
        assert words in told


def test_every_link_of_the_readme_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert targets
    assert not missing


# --- the site ---------------------------------------------------------------------------------------------------------


def _refuse(*_: object) -> None:
    raise OSError("the site is built without a net")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in this process: pages whose code ran in a test above are not run again."""
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings", "scanpy")):
        pytest.skip("the site needs the extras `docs` and `dev`")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    place = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # Those of the tools that build it; a page's own code runs with warnings as errors all the same.
        warnings.simplefilter("default")
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.setattr(socket.socket, "connect", _refuse)
        config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(place))
        build(config)
    return place


def test_the_site_has_every_page(site: Path) -> None:
    for page in PAGES[1:]:
        assert (site / page.relative_to(DOCS)).with_suffix(".html").is_file()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "made" not in page.parts]
    assert len(pages) >= len(PAGES) - 1
    for page in pages:
        assert not EXTERNAL.findall(page.read_text(encoding="utf-8")), page.name


def test_every_notebook_is_a_page_that_the_gallery_leads_to(site: Path) -> None:
    gallery = (site / "gallery.html").read_text(encoding="utf-8")
    for notebook in (ROOT / "examples").glob("*.ipynb"):
        assert (site / "gallery" / f"{notebook.stem}.html").is_file()
        assert f'href="gallery/{notebook.stem}.html"' in gallery


def test_every_public_name_is_in_the_api(site: Path) -> None:
    import imapce
    from imapce import baselines, comparison, datasets, exploration, metrics, plotting, tables

    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    for room in (imapce, baselines, comparison, datasets, exploration, metrics, plotting, tables):
        for name in room.__all__:
            if name not in ("METHODS", "__version__"):
                assert re.search(rf'id="imapce\.[\w.]*\b{name}"', shown), f"{room.__name__}.{name}"


def test_the_tables_of_options_are_those_of_the_commands(site: Path) -> None:
    from commands import run

    page = (site / "command-line.html").read_text(encoding="utf-8")
    names = re.findall(r"^\W*(\w+)  ", run("--help").stdout.split("Commands")[1], re.MULTILINE)
    assert len(names) >= 7
    for command in names:
        told = run(command, "--help").stdout
        section = page.split(f'<h2 id="{command}">')[1].split("<h2")[0]
        # A line of an option begins with its names; in what follows, other commands' options may be spoken of.
        lines = re.findall(r"^\W+(--[a-z-]+)(?:\s+(--[a-z-]+))?", told.split("Options")[1], re.MULTILINE)
        assert lines
        for option in {name for names in lines for name in names if name} - {"--help"}:
            assert f"<code>{option}</code>" in section, f"{command} {option}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site_opened_from_disk_is_whole_and_can_be_searched(site: Path, scheme: str) -> None:
    chromium, sync_playwright = chromium_or_skip()
    asked: list[str] = []
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 900}, color_scheme=scheme)
        page.on("request", lambda request: asked.append(request.url))
        # An icon that was asked for when the next page was opened is no fault.
        page.on("requestfailed", lambda one: "ABORTED" in (one.failure or "") or wrong.append(one.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        for name in ("index", "known", "explore", "command-line", "gallery", "api/view", "rooms/search"):
            page.goto((site / f"{name}.html").as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} is {wide} pixels wider than the window"
            broken = page.evaluate("[...document.images].filter(one => !one.complete || !one.naturalWidth).length")
            assert broken == 0, name
        page.click("label.md-header__button[for=__search]")
        page.type("input.md-search__input", "distinctness")
        page.wait_for_selector(".md-search-result__link[href*=glossary]", timeout=20_000)
        browser.close()
    assert not wrong
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))]
