"""How the site is made of its pages: code is followed by what came of it, commands by their options.

A line `![what it shows](figure)` below a block of code, folded or not, becomes the picture which that block gave. A
block that gives one and has no such line is an error, as is the contrary: a picture that nobody describes is lost on
who cannot see it.
"""

from __future__ import annotations

import contextlib
import html
import importlib
import re
from enum import Enum
from pathlib import Path
from typing import Any

import snippets
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from imapce.errors import MissingExtraError

NAMES = re.compile(r"^<!-- names of ([\w.]+)((?: but \w+)*) -->$", re.MULTILINE)
OPTIONS = re.compile(r"^<!-- options of (\w+) -->$", re.MULTILINE)
NOTEBOOK = re.compile(r"^<!-- notebook (\w+) -->$", re.MULTILINE)
OTHER_COMMANDS = "<!-- commands not told of above -->"
CHANGELOG = "<!-- the changelog -->"
# The pages that are notebooks, by their place on the site.
notebooks: dict[str, Path] = {}
# Code in a sentence or a cell, and the letters up to which it stays on one line.
INLINE_CODE = re.compile(r"<code>([^<]+)</code>")
ONE_LINE = 24
FIGURE = re.compile(r"\n*(?P<folded></details>\n*)?!\[(?P<alt>[^\]]+)\]\(figure\)")


def on_files(files: Files, config: Any) -> Files:
    """Run every page; what its code wrote can be linked to."""
    for notebook in sorted((Path(config.config_file_path).parent / "examples").glob("*.ipynb")):
        page = File.generated(config, f"gallery/{notebook.stem}.md", content=snippets.markdown_of(notebook))
        files.append(page)
        files.append(File.generated(config, f"gallery/{notebook.name}", abs_src_path=str(notebook)))
        notebooks[page.src_uri] = notebook
    for page in [file for file in files if file.is_documentation_page()]:
        try:
            outcome = snippets.run(_source(page))
        except Exception as error:
            raise PluginError(f"the code of {page.src_uri} does not run: {type(error).__name__}: {error}") from error
        for name, content in outcome.files.items():
            files.append(File.generated(config, f"made/{page.name}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page with output, pictures and tables of options in their places."""
    markdown = markdown.replace(CHANGELOG, _changelog(config))
    markdown = NOTEBOOK.sub(lambda match: _link(match[1]), markdown)
    markdown = NAMES.sub(lambda match: names_of(match[1], match[2].split(" but ")[1:]), markdown)
    if OTHER_COMMANDS in markdown:
        markdown = markdown.replace(OTHER_COMMANDS, other_commands(OPTIONS.findall(markdown)))
    markdown = OPTIONS.sub(lambda match: options_of(match[1]), markdown)
    return _with_outcome(markdown, page.file)


def on_page_content(text: str, page: Any, config: Any, files: Files) -> str:
    """The page with its long inline code marked as such."""
    return with_long_code(text)


def with_long_code(text: str) -> str:
    """Inline code that is too long for one line, word by word: site.css breaks it between words, not within options.

    >>> with_long_code("<code>--sheet</code> <code>imapce embed cells.csv --sheet</code>")[-50:]
    '<span>cells.csv</span> <span>--sheet</span></code>'
    """

    def marked(match: re.Match[str]) -> str:
        if "\n" in match[1] or len(html.unescape(match[1])) <= ONE_LINE:
            return match[0]
        words = (
            f"<span>{word}</span>" if len(html.unescape(word)) <= ONE_LINE else word for word in match[1].split(" ")
        )
        return f'<code class="long">{" ".join(words)}</code>'

    return INLINE_CODE.sub(marked, text)


def _with_outcome(markdown: str, file: File) -> str:
    outcome = snippets.run(_source(file))
    up = "../" * file.src_uri.count("/")
    parts, place = [], 0
    shown = [match for match in snippets.FENCE.finditer(markdown) if match["language"] in snippets.RUN]
    for match, output, picture in zip(shown, outcome.outputs, outcome.pictures, strict=True):
        parts.append(markdown[place : match.end()])
        place = match.end()
        if output:
            parts.append(f"\n\n``` {{ .text .output }}\n{output}\n```\n")
        described = FIGURE.match(markdown, place)
        if picture is not None and file.src_uri in notebooks:
            # A notebook says what it draws in the paragraph above.
            parts.append(f"\n\n![A figure of this notebook]({up}made/{file.name}/{picture})")
        elif (described is None) != (picture is None):
            raise PluginError(f"{file.src_uri}: a figure and its ![description](figure) go together: {match['code']}")
        elif described is not None:
            end = f"\n\n{described['folded']}" if described["folded"] else "\n\n"
            parts.append(f"{end}![{described['alt']}]({up}made/{file.name}/{picture})")
            place = described.end()
    return "".join([*parts, markdown[place:]])


def _source(page: File) -> Path:
    """The file that a page is made of."""
    return notebooks.get(page.src_uri) or Path(page.abs_src_path)


def _link(notebook: str) -> str:
    """The way to a notebook, where there is one."""
    return f"[The notebook](gallery/{notebook}.md)" if f"gallery/{notebook}.md" in notebooks else ""


def names_of(room: str, left_out: list[str]) -> str:
    """A place in the API for every public name of a room, by the module it is written in.

    >>> names_of("imapce.errors", []).splitlines()[0]
    '::: imapce.errors.Argument'
    """
    module = importlib.import_module(room)
    public = getattr(module, "__all__", None) or sorted(vars(module))
    homes = []
    for name in public:
        with contextlib.suppress(MissingExtraError):
            value = getattr(module, name)
            # A library's own name, a number or a table has no docstring here.
            if name not in left_out and callable(value) and value.__module__.startswith("imapce"):
                homes.append(f"::: {value.__module__}.{value.__qualname__}")
    return "\n\n".join(homes)


def options_of(command: str) -> str:
    """The arguments and options of a command as a table, from the command itself.

    >>> options_of("demo").splitlines()[0]
    '| option | meaning | default |'
    """
    import typer.main

    from imapce.cli import app

    lines = ["| option | meaning | default |", "| --- | --- | --- |"]
    # What is needed first, then what is asked for by name; how text files are written is rarely needed.
    parameters = typer.main.get_command(app).commands[command].params
    for parameter in sorted(parameters, key=lambda one: (not one.required, getattr(one, "rich_help_panel", "") or "")):
        is_argument = parameter.param_type_name == "argument"
        names = [parameter.metavar] if is_argument else [*parameter.opts, *parameter.secondary_opts]
        # Older names of an option work and are not shown, here as in --help.
        if "--help" in names or getattr(parameter, "hidden", False):
            continue
        values = [] if is_argument else [_value(parameter)]
        shown = " ".join(_code(text) for text in (*names, *values) if text)
        meaning = " ".join((parameter.help or "").split()).replace("|", "&#124;")
        lines.append(f"| {shown} | {meaning} | {_default(parameter)} |")
    return "\n".join(lines)


def other_commands(told: list[str]) -> str:
    """A section with help and options for each command that a page does not tell of."""
    import typer.main

    from imapce.cli import app

    commands = typer.main.get_command(app).commands
    return "\n\n".join(
        f"## {name}\n\n{(command.help or '').split(chr(10))[0]}\n\n<!-- options of {name} -->"
        for name, command in commands.items()
        if name not in told
    )


def _value(parameter: Any) -> str:
    """What is to be written after an option: its name for it, or its choices, or a number."""
    if parameter.metavar or parameter.is_flag:
        return parameter.metavar or ""
    if isinstance(parameter.default, Enum):
        return "|".join(choice.value for choice in type(parameter.default))
    return "NUMBER"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "needed"
    value = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    return "" if value is None or value is False or value == "" else "on" if value is True else _code(str(value))


def _code(text: str) -> str:
    """Code in a cell, which may hold no bar of its own and breaks where there would be one."""
    return f"<code>{html.escape(text).replace('|', '&#124;<wbr>')}</code>"


def _changelog(config: Any) -> str:
    """CHANGELOG.md without its own title."""
    text = (Path(config.config_file_path).parent / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.split("\n", 1)[1].strip()
