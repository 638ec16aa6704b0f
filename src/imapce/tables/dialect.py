"""How a text file is written, recognised from its beginning: encoding, separator, decimal sign, header, comments.

Plain rules in a fixed order, no guesses by frequency of letters: the same beginning always gives the same dialect.

>>> recognise(b"size;weight\\n1,5;2,25\\n3,0;4,5\\n").words
'semicolons between values and a decimal comma'
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any

from imapce.common.words import enumerated
from imapce.errors import InvalidTypeError, InvalidValueError, Phrase, Sentence

# What is looked at; files with longer lines are looked at until two lines are seen.
SAMPLE_BYTES = 1 << 16
MOST_SAMPLE_ROWS = 200
MOST_TITLE_LINES = 20

BLANKS = " "
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", BLANKS: "blanks"}
# Words that users type for these, as a tab is hard to type in a shell.
_SPELLED = {"tab": "\t", "\\t": "\t", "blank": BLANKS, "blanks": BLANKS, "space": BLANKS, "comma": ",", "bar": "|"}
_SPELLED |= {"semicolon": ";", "\\s+": BLANKS}
# Not numbers, and no names either: what stands for a missing value in the first row of a file without header.
MISSING_WORDS = ("", "na", "nan", "n/a", "null", "none", "<na>", "#n/a", "?", "-", "--", ".", "*")
_YEARS = range(1000, 3000)
# As many evenly spaced numbers (wavelengths, say) are never a row of data.
_EVEN_NAMES = 5
_DATE = re.compile(r"\d{4}[-/]\d\d?[-/]\d\d?|\d\d?[./]\d\d?[./]\d{2,4}")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a]")


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; `words` tells what was recognised and is not the default, "" where nothing was.

    ``skipped`` lines stand above the header (comments, a title); ``names`` are those of a header in a comment.

    >>> Dialect().sep, Dialect().words
    (',', '')
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    _: KW_ONLY
    header: bool = True
    skipped: int = 0
    names: tuple[str, ...] | None = None
    words: str = ""


def recognise(
    start: bytes,
    *,
    whole: bool = True,
    default_sep: str = ",",
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Dialect:
    """The dialect of a file that begins with these bytes; what is given is taken as it is and not among its `words`.

    ``whole`` says that the bytes are the whole file, so that their last line is whole too.
    """
    sep, decimal, encoding = check_given(sep=sep, decimal=decimal, encoding=encoding, header=header)
    code = encoding or encoding_of(start, whole=whole)
    try:
        text = codecs.getincrementaldecoder(code)().decode(start, whole).removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        raise ValueError(
            Sentence(f"it is not {code} text; ", Phrase("another encoding", "pass another encoding"))
        ) from problem
    if _CONTROL.search(text):
        raise ValueError("it holds zero bytes or control characters, so it is not text")
    lines = io.StringIO(text, newline="").readlines()
    if not whole and len(lines) > 1:
        lines.pop()
    said = re.fullmatch(r"sep=(.)\s*", lines[0], re.IGNORECASE) if lines else None
    above = 0
    while above < len(lines) and (not lines[above].strip() or lines[above].startswith("#") or (said and above == 0)):
        above += 1
    comments = [line for line in lines[:above] if line.startswith("#")]
    if above == len(lines):
        # Nothing but a header that begins with #.
        above, comments = 0, []
    lines = lines[above:]
    chosen, titles = (sep, 0) if sep is not None else (said[1], 0) if said else _separator(lines, default_sep)
    rows = _sample(lines[titles:], chosen)
    mark = decimal or _decimal(rows, chosen)
    quoted = [_all_quoted(line, chosen) for line in lines[titles : titles + 2]]
    first = header if header is not None else quoted == [True, False] or not _headless(rows, mark)
    names = _names_in_comment(comments, rows, chosen) if not first and header is None and not titles else None

    facts: list[str] = []
    if sep is None and chosen != default_sep:
        facts.append(f"{SEPARATORS.get(chosen, repr(chosen))} between values")
    if decimal is None and mark != ".":
        facts.append("a decimal comma")
    if encoding is None and code != "utf-8":
        facts.append(f"the encoding {code}")
    if names is not None:
        facts.append("the names in its comment")
    elif header is None and not first:
        facts.append("no header (the columns are x0, x1, ...)")
    passed_over = len(comments) - (names is not None) + titles
    if passed_over:
        facts.append(f"{passed_over} {'line' if passed_over == 1 else 'lines'} above the table passed over")
    skipped = above + titles
    return Dialect(chosen, mark, code, header=first, skipped=skipped, names=names, words=enumerated(facts))


def check_given(
    *, sep: str | None, decimal: str | None, encoding: str | None, header: bool | None
) -> tuple[str | None, str | None, str | None]:
    """Separator, decimal sign and encoding as a user gave them, words spelled out, or one sentence on what is wrong."""
    if sep is not None:
        sep = _SPELLED.get(sep.lower(), sep) if isinstance(sep, str) else sep
        if not isinstance(sep, str) or not sep or "\n" in sep or '"' in sep:
            raise InvalidValueError(
                "sep", "must be the text between two values", repr(sep), way_out="pass for example ';'"
            )
    if decimal is not None and decimal not in (".", ","):
        raise InvalidValueError("decimal", "must be '.' or ','", repr(decimal), way_out="pass one of the two")
    if sep is not None and sep == decimal == ",":
        raise InvalidValueError("decimal", "must differ from sep, got ',' for both: pass another sep.")
    if encoding is not None:
        try:
            encoding = codecs.lookup(encoding).name
        except (LookupError, TypeError) as problem:
            raise InvalidValueError(
                "encoding",
                "must be one that Python knows",
                repr(encoding),
                way_out="pass for example 'utf-8' or 'cp1252'",
            ) from problem
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    if header is not None and not isinstance(header, bool):
        raise InvalidTypeError("header", "must be True, False or None", repr(header), way_out="pass one of these")
    return sep, decimal, encoding


def encoding_of(start: bytes, *, whole: bool) -> str:
    """The encoding by its mark, by zero bytes at every second place (UTF-16), by valid UTF-8, else of Windows."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for place, code in ((1, "utf-16-le"), (0, "utf-16-be")):
        half, other = start[place::2], start[1 - place :: 2]
        if half.count(0) > 0.7 * len(half) and b"\0" not in other:
            return code
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, whole)
        return "utf-8"
    except UnicodeDecodeError:
        return windows_or_latin(start)


def windows_or_latin(data: bytes) -> str:
    """Which of the two encodings of one byte a letter; every byte is something in Latin-1, five are not in cp1252."""
    try:
        data.decode("cp1252")
        return "cp1252"
    except UnicodeDecodeError:
        return "latin-1"


def parse_cells(lines: list[str], sep: str, most: int | None = MOST_SAMPLE_ROWS) -> list[list[str]]:
    """The cells of lines, trimmed, empty lines left out; blanks after a separator may stand before a quote."""
    if sep == BLANKS:
        lines = [line.replace("\t", " ").strip() + "\n" for line in lines]
    elif len(sep) > 1:
        lines, sep = [line.replace(sep, "\x1f") for line in lines], "\x1f"
    rows = []
    try:
        for row in csv.reader(lines, delimiter=sep, skipinitialspace=True):
            if row and (len(row) > 1 or row[0].strip()):
                rows.append([cell.strip() for cell in row])
            if most is not None and len(rows) >= most:
                break
    except csv.Error as problem:
        raise ValueError(str(problem)) from problem
    return rows


def _sample(lines: list[str], sep: str) -> list[list[str]]:
    try:
        return parse_cells(lines, sep)
    except ValueError:
        # A line of 128 kB without this separator is a cell that the csv module refuses, and no sign of the separator.
        return []


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value."""
    return cell.lower() in MISSING_WORDS


def _number(cell: str, decimal: str) -> float | None:
    if decimal == "," and "," in cell:
        cell = cell.replace(".", "").replace(",", ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _separator(lines: list[str], default: str) -> tuple[str, int]:
    """The separator that splits nearly every line into as many cells, and how many title lines stand above these.

    A semicolon goes before a comma, which is then a decimal sign; blanks come last, as text is full of them.
    """
    cells = {sep: _sample(lines, sep) for sep in ("\t", ";", "|", ",")}
    most = max(map(len, cells.values()))
    for sep, rows in cells.items():
        # A wrong separator in front of a quote opens a cell that swallows the lines below it.
        if _splits(rows) and 2 * len(rows) > most:
            return sep, 0
    blank = _sample(lines, BLANKS)
    if len(blank) > 1 and _splits(blank, share=1.0) and _has_numbers(blank):
        return BLANKS, 0
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for sep, rows in cells.items():
        width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
        titles = next((place for place, row in enumerate(rows) if len(row) == width), 0)
        if 0 < titles <= MOST_TITLE_LINES and len(rows) - titles > 1 and _splits(rows[titles:]):
            return sep, filled[titles]
    return default, 0


def _splits(rows: list[list[str]], share: float = 0.9) -> bool:
    widths = [len(row) for row in rows]
    if not widths or max(widths) < 2:
        return False
    width, count = Counter(widths[1:] or widths).most_common(1)[0]
    # R leaves out the name above the row names; a header may lack the separator that ends every row, or have it alone.
    near = widths[0] == width or (width > 2 and widths[0] == width - 1)
    near = near or (widths[0] == width + 1 and not rows[0][-1])
    return width > 1 and near and count >= share * len(widths[1:] or widths)


def _has_numbers(rows: list[list[str]]) -> bool:
    below = list(zip(*rows[1:], strict=False))
    return any(all(is_missing(c) or _number(c.replace(",", "."), ".") is not None for c in column) for column in below)


def _decimal(rows: list[list[str]], sep: str) -> str:
    """A comma, where more cells are numbers with one than with a point."""
    cells = [cell for row in rows for cell in row]
    points = sum(bool(re.fullmatch(r"[+-]?\d*\.\d+([eE][+-]?\d+)?", cell)) for cell in cells)
    commas = [c for c in cells if re.fullmatch(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?", c)]
    if sep != ";" and all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", cell) for cell in commas):
        # As likely thousands. A file with semicolons has them because its commas are something else.
        return "."
    return "," if len(commas) > points else "."


def _headless(rows: list[list[str]], decimal: str) -> bool:
    """Whether the first row is data: numbers over numbers or dates over dates, or text that comes again below."""
    if not rows:
        return False
    first, below = rows[0], rows[1:]
    numbers, text, again, dates = [], 0, 0, 0
    for place, cell in enumerate(first):
        column = [row[place] for row in below if place < len(row) and not is_missing(row[place])]
        numeric = all(_number(value, decimal) is not None for value in column)
        number = _number(cell, decimal)
        if is_missing(cell):
            continue
        if number is not None:
            if numeric:
                numbers.append((cell, number))
            continue
        if column and numeric:
            # Text above numbers is a name, whatever the others are.
            return False
        text += 1
        again += cell in column
        dates += bool(_DATE.match(cell) and column and all(_DATE.match(value) for value in column))
    if dates:
        return True
    if numbers:
        return not _numbers_are_names([cell for cell, _ in numbers], [number for _, number in numbers], again)
    return text > 0 and 2 * again > text


def _all_quoted(line: str, sep: str) -> bool:
    """Whether every cell is in quotes, as programs that quote text alone write names but not a row of numbers."""
    cell = '"([^"]|"")*"'
    return re.fullmatch(rf"{cell}({re.escape(sep)}\s*{cell})*", line.strip()) is not None


def _numbers_are_names(cells: list[str], values: list[float], again: int) -> bool:
    """Whether numbers in the first row are names: 0, 1, 2, ...; years; or a long even row, as wavelengths are."""
    if again:
        return False
    whole = all(cell.isdecimal() for cell in cells)
    steps = [after - before for before, after in pairwise(values)]
    even = all(abs(step - steps[0]) <= 1e-6 * abs(steps[0]) for step in steps) and all(steps)
    if whole and even and (not steps or steps[0] == 1) and (values[0] == 0 or (values[0] == 1 and steps)):
        return True
    if whole and even and all(value in _YEARS for value in values):
        return True
    return even and len(values) >= _EVEN_NAMES


def _names_in_comment(comments: list[str], rows: list[list[str]], sep: str) -> tuple[str, ...] | None:
    """The names in the last comment above a table without header, where it has one for each column."""
    if not comments or not rows:
        return None
    names: list[Any] = next(iter(parse_cells([comments[-1].lstrip("#").strip() + "\n"], sep)), [])
    fit = len(names) == len(rows[0]) and all(names) and len(set(names)) == len(names)
    return tuple(names) if fit and len(names) > 1 else None
