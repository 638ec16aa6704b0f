"""Every option that more than one command has, declared once: singly, or as a group that a command takes whole.

def embed(asked: DataOptions, fit: ViewOptions, output: Output = None) -> None: ...

app.command()(with_option_groups(embed))      # imapce embed DATA --known ... --alpha ... --output ...
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from imapce.errors import InvalidValueError

if TYPE_CHECKING:
    from rich.console import Console

    from imapce.estimators.imapce import IMAPCE

Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Table to write, with the columns of DATA, the row number and the result: .parquet, .csv, .tsv, .arrow, "
        ".npy (the axes alone), or .h5ad (a copy of DATA with the result); - is standard output.",
    ),
]
OnlyResult = Annotated[
    bool,
    typer.Option(
        "--only-result", help="Leave the columns of DATA out of the table: the row number and the result alone."
    ),
]
Details = Annotated[
    bool, typer.Option("--details", help="Tell also how it was found: weights, objective, kurtosis, other optima.")
]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Scatter plot to write: .png, .pdf or .svg.")]
Report = Annotated[str | None, typer.Option("--report", metavar="FILE", help="HTML page to write.")]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file written by `imapce embed --save`.")]

TEXT_PANEL = "How a text file is written, where what is recognised is not right"


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """What of a result is printed, and how."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, not as words.")] = False

    def console(self, *, stderr: bool = False) -> Console:
        """Where the words of a result go; nowhere where they are not wanted."""
        from rich.console import Console

        return Console(stderr=stderr, quiet=self.quiet or self.as_json)

    def result(self, **facts: Any) -> None:
        """Print the result as JSON, with the notes and warnings of the way to it, where that was asked for."""
        if self.as_json:
            from imapce.cli.messages import voice

            everything = {**facts, "notes": voice().notes, "warnings": voice().warnings}
            typer.echo(json.dumps(in_plain_json(everything), indent=2, ensure_ascii=False, allow_nan=False))

    def require_stdout_free(self, output: str | None) -> None:
        """Refuse a table and an object on the same stream."""
        if self.as_json and output == "-":
            raise InvalidValueError(
                "--json and --output - both write to standard output, which holds one of them: name a file with -o."
            )


def in_plain_json(value: Any) -> Any:
    """A value as JSON holds it: arrays as lists, numbers that JSON does not know as words or null.

    >>> in_plain_json({"alpha": float("inf"), "score": float("nan"), "path": Path("a.csv")})
    {'alpha': 'inf', 'score': None, 'path': 'a.csv'}
    """
    if isinstance(value, Mapping):
        return {str(name): in_plain_json(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        return in_plain_json(value.tolist())
    if isinstance(value, (list, tuple)):
        return [in_plain_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return str(value) if isinstance(value, Path) else value


class Missing(StrEnum):
    """What to do with missing values."""

    error = "error"
    mean = "mean"


class Dates(StrEnum):
    """What to do with dates."""

    leave_out = "leave-out"
    as_numbers = "as-numbers"


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a text file is written, where what is recognised is not right."""

    sep: Annotated[
        str | None,
        typer.Option(
            "--sep",
            metavar="TEXT",
            help="What stands between values: ';', tab, blanks, ...",
            rich_help_panel=TEXT_PANEL,
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", metavar=".|,", help="The decimal sign.", rich_help_panel=TEXT_PANEL)
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding", metavar="NAME", help="As utf-8, utf-16, latin-1 or cp1252.", rich_help_panel=TEXT_PANEL
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row holds the names.", rich_help_panel=TEXT_PANEL),
    ] = None

    sheet: Annotated[
        str | None,
        typer.Option("--sheet", metavar="NAME", help="The sheet of an Excel file.", rich_help_panel=TEXT_PANEL),
    ] = None

    @property
    def reading(self) -> dict[str, Any]:
        """What `read_table` is given beside the path."""
        return {
            "sep": self.sep,
            "decimal": self.decimal,
            "encoding": self.encoding,
            "header": self.header,
            "sheet": self.sheet,
        }


@dataclass(frozen=True, kw_only=True)
class DataOptions(FileOptions):
    """A file of rows, what of it is known, and which of its columns are no features."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Rows: .csv, .tsv or other text (also .gz, .bz2, .zst), .json, .jsonl, .xlsx, .zip, .parquet (also a "
            "folder or a pattern), .arrow, .feather, .npy, .npz, .h5ad, or - for text on standard input.",
        ),
    ]
    known: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            metavar="COLUMNS",
            help="Columns that are known: what they explain is not shown (positions from 0 for .npy and .npz). One "
            "that can be a feature is one, numbers as numbers; any other, also one of --drop or of obs, is a label of "
            "the rows, and its numbers are classes where they repeat.",
        ),
    ] = None
    erase: Annotated[
        str | None,
        typer.Option(
            "--erase",
            metavar="COLUMNS",
            help="The same, and nothing linear of them may be left in the view, whatever --alpha.",
        ),
    ] = None
    known_rows: Annotated[
        list[str] | None,
        typer.Option(
            "--known-rows",
            metavar="COLUMN=VALUE",
            help="Rows of DATA that are known; repeatable. COLUMN is no feature.",
        ),
    ] = None
    background: Annotated[
        str | None, typer.Option("--background", metavar="FILE", help="Rows that are known, with the columns of DATA.")
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="COLUMNS",
            help="Columns only to look at: each colours pictures of its own. They are no features, but where they are "
            "known.",
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="COLUMNS", help="The features; those of --known and --erase are added."),
    ] = None
    attributes: Annotated[str | None, typer.Option("--attributes", hidden=True)] = None
    known_label: Annotated[str | None, typer.Option("--known-label", hidden=True)] = None
    drop: Annotated[str | None, typer.Option("--drop", metavar="COLUMNS", help="Columns that are no features.")] = None
    dates: Annotated[
        Dates, typer.Option("--dates", help="Leave dates out of the features, or take them as numbers of days.")
    ] = Dates.leave_out
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="A,B|skewed", help="Columns to look at on a log scale; skewed is all strongly skewed ones."
        ),
    ] = None
    rank: Annotated[
        str | None,
        typer.Option("--rank", metavar="A,B|skewed", help="Columns to look at by rank, as normal scores."),
    ] = None

    @property
    def name(self) -> str:
        """What the data is called in titles: the file without its folder."""
        return "standard input" if self.data == "-" else Path(self.data).name


@dataclass(frozen=True)
class FitOptions:
    """What IMAPCE is told besides the data, wherever it is fitted."""

    alpha: Annotated[
        str,
        typer.Option(
            "--alpha",
            metavar="auto|NUMBER",
            help="auto explains known columns and labels away, and finds a weight for a background or known rows. A "
            "number weighs all that is known; 0 ignores it, 1 is the paper's.",
        ),
    ] = "auto"
    mu: Annotated[str, typer.Option("--mu", metavar="auto|paper|NUMBER", help="Weight of pulling clusters apart.")] = (
        "auto"
    )
    center_only: Annotated[bool, typer.Option("--center-only", help="Keep the columns' own scales.")] = False
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random.")] = 0
    missing: Annotated[Missing, typer.Option("--missing", help="Refuse missing values, or fill them with means.")] = (
        Missing.error
    )

    @property
    def weights(self) -> dict[str, Any]:
        """Alpha and mu as the estimator takes them: numbers, or the names of rules."""
        return {"alpha": _number_or_rule(self.alpha), "mu": _number_or_rule(self.mu)}


@dataclass(frozen=True)
class ViewOptions(FitOptions):
    """What the one IMAPCE of a command is told, where no other method stands beside it."""

    components: Annotated[
        int, typer.Option("--components", min=2, help="Axes of the view; of more than three the first two are drawn.")
    ] = 2
    starts: Annotated[int, typer.Option("--starts", help="Starting points of the search.")] = 10

    def estimator(self, **parameters: Any) -> IMAPCE:
        """The estimator that these options describe; `parameters` are those that the command decides itself."""
        from imapce.estimators.imapce import IMAPCE

        return IMAPCE(
            self.components,
            standardize=not self.center_only,
            n_starts=self.starts,
            missing=self.missing.value,
            **self.weights,
            **parameters,
        )


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a group of options spelled out, option by option.

    Typer knows no groups and reads the signature of a function, so it is shown one without them.
    """
    types = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    groups = {name: types[name] for name in parameters if dataclasses.is_dataclass(types[name])}
    shown: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        if name in groups:
            shown += _options_of(groups[name])
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[name]))

    @functools.wraps(command)
    def spelled_out(**values: Any) -> None:
        gathered = {
            name: group(**{option.name: values.pop(option.name) for option in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        command(**gathered, **values)

    spelled_out.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    # Typer looks here as well, and would meet the types of the groups.
    spelled_out.__annotations__ = {option.name: option.annotation for option in shown}
    return spelled_out


def _options_of(group: type) -> list[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if option.default is dataclasses.MISSING else option.default,
            annotation=types[option.name],
        )
        for option in dataclasses.fields(group)
    ]


def _number_or_rule(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
