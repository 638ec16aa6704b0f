"""Cells as people write them: numbers among stray words, with a currency or per cent, dates by day, month and year.

A column is recognised as a whole, since no cell alone tells "1.234" from 1,234 or the third of April from March 4th.
It is numbers, or dates, where

* at least 90 % of its cells are (all but one in a short column), words that everybody writes for no value ("n.a.", "-",
  "missing"; "unknown", "<LOD") not counted: of other words one in ten is a slip, more of them are a meaning;
* at most three different other words stand among them, none of which holds a digit: "12b" and "2nd" are codes;
* no number of five digits or more begins with 0, as postal codes do;
* beside "unknown" or another word, more than ten whole numbers differ: "1", "2", "3", "unknown" are categories.

Text of whole numbers and nothing else stays text: whoever wrote 1001 as text meant a code.

>>> found = recognise_cells({"1.5": 1, "2.25": 1, "n.a.": 1, "3.5": 1})
>>> found.writing.kind, found.writing.words, found.values["2.25"], found.values["n.a."]
('number', ('n.a.',), 2.25, None)
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, Literal

# Stand for no value wherever numbers do, also among a few codes.
NO_VALUE = frozenset(
    {"", "?", "-", "--", "---", "–", "—", ".", "..", "...", "*", "/", "na", "n.a.", "n.a", "n. a.", "n/a", "#n/a"}
    | {"#na", "nan", "null", "nil", "none", "<na>", "missing", "blank", "(blank)", "empty", "not available"}
    | {"not applicable", "k.a.", "k. a.", "keine angabe", "#value!", "#ref!", "#div/0!", "#name?", "#num!"}
)
# The same among measurements; among a few codes they are an answer of their own.
NO_ANSWER = frozenset(
    {"unknown", "unk", "unbekannt", "inconnu", "not known", "not measured", "not recorded", "not reported"}
    | {"not detected", "n.d.", "nd", "n/d", "bdl", "<lod", "<loq", "< lod", "< loq", "lod", "loq", "below detection"}
    | {"refused", "no answer", "no data", "invalid", "error", "tbd", "trace"}
)
LEAST_SHARE = 0.9
MOST_OTHER_WORDS = 3
# Fewer different whole numbers may be codes; a scale of school marks or of pain has up to ten.
MOST_CODES = 10
# So many different cells tell that a column is prose; all of them are read only where they do not.
SAMPLE = 1000

_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"})
_SAME_SIGN = {
    "EUR": "€",
    "USD": "$",
    "US$": "$",
    "GBP": "£",
    "JPY": "¥",
    "INR": "₹",
    "RS": "₹",
    "RS.": "₹",
    "KR.": "KR",
}
_CURRENCY = (
    r"(?:US|C|A|NZ|HK|S|R)\$|[€$£¥₹₩₽₺₪฿]|EUR|USD|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|ZAR|"
    r"MXN|KRW|TRY|zł|Kč|kr\.?|Ft|Fr\.?|Rs\.?"
)
_AMOUNT = re.compile(
    rf"(?P<open>\()?\s*(?P<minus>[-+]?)\s?(?P<before>{_CURRENCY})?\s*(?P<again>[-+]?)"
    rf"(?P<digits>\d[\d.,' ]*(?:e[-+]?\d+)?|[.,]\d+(?:e[-+]?\d+)?)\s*(?P<after>{_CURRENCY}|%)?\s*(?P<close>\))?",
    re.IGNORECASE,
)
# "<0.5" and "> 100" hold a digit and are no codes.
_BOUND = re.compile(r"[<>≤≥~≈]=?\s*[\d.,]+\s*\S{0,5}")
_CODE = re.compile(r"0\d{4,}")
_TIME = r"(?:[T ,]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?\s*(?P<half>[ap]m)?)?"
_DATES = tuple(
    re.compile(day + _TIME, re.IGNORECASE)
    for day in (
        r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})",
        r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<y>\d{4})",
        r"(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d\d)",
        r"(?P<a>\d\d)\.(?P<b>\d\d)\.(?P<y>\d\d)",
        r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.)?[- ]\s*(?P<name>[^\W\d_]{3,9})\.?[-, ]\s*(?P<y>\d{4}|\d\d)",
        r"(?P<name>[^\W\d_]{3,9})\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?,? (?P<y>\d{4})",
    )
)
_MONTHS = {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12} | {
    letters: place + 1 for place, letters in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"))
}
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year", "ymd": "year/month/day", "": "with the name of the month"}


@dataclass(frozen=True)
class Writing:
    """How the cells of a column are written, so that those of new rows are read alike.

    `decimal` is the sign before the fraction of a number, `beside` what stands beside it ("€", "%"), `order` that of a
    date ("dmy"), and `words` are those that stood for no value.

    >>> Writing("number", decimal=",", beside="€").value("1.234,50 €")
    1234.5
    """

    kind: Literal["number", "date"]
    decimal: str = "."
    beside: str = ""
    order: str = ""
    words: tuple[str, ...] = ()

    def value(self, cell: str) -> float | None:
        """The number in a cell, of a date the days since 1970; None where it stands for no value.

        Raises ValueError for a word that was not there when the column was learned.
        """
        plain = plain_cell(cell)
        if plain.lower() in NO_VALUE | NO_ANSWER or cell in self.words or self._is_bound(plain):
            return None
        if self.kind == "date":
            day = _date(plain)
            if day is not None and (value := day.in_order(self.order)) is not None:
                return value
        else:
            amount = _amount(plain)
            number = None if amount is None else amount.value(self.decimal)
            if amount is not None and number is not None and amount.beside in ("", self.beside):
                return number
        raise ValueError(cell)

    def _is_bound(self, plain: str) -> bool:
        """Whether a cell says "less than" or the like, in a column in which cells did."""
        return _BOUND.fullmatch(plain) is not None and any(_BOUND.fullmatch(word) for word in self.words)

    def to_json(self) -> dict[str, Any]:
        """Plain text and lists.

        >>> Writing("number", words=("n.a.",)).to_json()
        {'kind': 'number', 'decimal': '.', 'beside': '', 'order': '', 'words': ['n.a.']}
        """
        return {
            "kind": self.kind,
            "decimal": self.decimal,
            "beside": self.beside,
            "order": self.order,
            "words": list(self.words),
        }

    @classmethod
    def from_json(cls, stored: Any) -> Writing:
        """What `to_json` wrote; anything else raises ValueError.

        >>> Writing.from_json(Writing("date", order="dmy").to_json()).order
        'dmy'
        """
        told = cls(**{**stored, "words": tuple(stored["words"])})
        sound = told.kind in ("number", "date") and told.decimal in (".", ",") and told.order in _ORDERS
        if not sound or not all(isinstance(text, str) for text in (told.beside, *told.words)):
            raise ValueError("a column is written in no way that is known")
        return told


@dataclass(frozen=True, eq=False)
class Recognised:
    """A column as it was recognised: its writing, the value of every different cell, and an example of one."""

    writing: Writing
    values: Mapping[str, float | None]
    example: str
    # Of dates: no cell tells the day from the month.
    undecided: bool = False

    @property
    def words(self) -> str:
        """What the cells are, as in "'price' is numbers in €, as '€1,234.50'"."""
        writing = self.writing
        if writing.kind == "date":
            doubt = ", though no cell tells the day from the month" if self.undecided else ""
            return f"is dates, {self.order_in_words}, as {self.example!r}{doubt}"
        beside = (
            "per cent" if writing.beside == "%" else f"numbers in {writing.beside}" if writing.beside else "numbers"
        )
        if writing.decimal == ",":
            beside += " with a decimal comma"
        return f"is {beside}" + (f", as {self.example!r}" if beside != "numbers" else "")

    @property
    def order_in_words(self) -> str:
        """How a date is written."""
        order = _ORDERS[self.writing.order]
        return f"written {order}" if self.writing.order else order


@dataclass(frozen=True)
class _Amount:
    digits: str
    negative: bool
    beside: str
    in_brackets: bool

    def value(self, decimal: str) -> float | None:
        digits = _in_point_notation(self.digits, decimal, self.beside not in ("", "%"))
        return None if digits is None else -float(digits) if self.negative else float(digits)

    @property
    def is_code(self) -> bool:
        return _CODE.fullmatch(self.digits) is not None


@dataclass(frozen=True)
class _Day:
    """A date whose first two numbers may be day and month in either order."""

    year: int
    day: int
    month: int
    ordered: str
    share: float

    def in_order(self, order: str) -> float | None:
        if order not in (("dmy", "mdy") if self.ordered == "?" else (self.ordered,)):
            return None
        day, month = (self.month, self.day) if order == "mdy" else (self.day, self.month)
        try:
            return datetime.date(self.year, month, day).toordinal() - _EPOCH + self.share
        except ValueError:
            return None


def recognise_cells(counts: Mapping[str, int], *, decimal: str | None = None, typed: bool = False) -> Recognised | None:
    """What the different cells of a column of text are, each with how often it occurs; None where they are text.

    `decimal` is that of the file, for a column that leaves it open. `typed` asks more, as someone may have chosen text:
    words or signs beside the numbers, and more than ten different ones.

    >>> recognise_cells({"31/12/2024": 1, "01/02/2025": 3}).words
    "is dates, written day/month/year, as '31/12/2024'"
    >>> recognise_cells({"1-2": 4, "3-4": 5}) is None
    True
    """
    plain = {cell: plain_cell(cell) for cell in counts}
    told = {cell: text for cell, text in plain.items() if text.lower() not in NO_VALUE | NO_ANSWER}
    head = list(islice(told.values(), SAMPLE))
    if 2 * sum(any(letter.isdigit() for letter in text) for text in head) < len(head) or not head:
        return None
    for recognise in (_as_numbers, _as_dates):
        # A column of another kind is known for it by its beginning.
        some = dict(islice(told.items(), SAMPLE))
        if len(told) > SAMPLE and recognise(some, counts, decimal) is None:
            continue
        found = recognise(told, counts, decimal)
        if found is not None:
            return _judged(found, plain, counts, typed)
    return None


def plain_cell(cell: str) -> str:
    """A cell without the blanks around it, with plain blanks and signs in it."""
    return cell.translate(_SPACES).strip()


@dataclass
class _Found:
    kind: Literal["number", "date"]
    values: dict[str, float]
    decimal: str = "."
    beside: str = ""
    order: str = ""
    undecided: bool = False
    others: list[str] = field(default_factory=list)


def _judged(found: _Found, plain: Mapping[str, str], counts: Mapping[str, int], typed: bool) -> Recognised | None:
    """Whether the words among the values leave them what they are."""
    words = [cell for cell, text in plain.items() if cell not in found.values and text]
    answers = [cell for cell in words if plain[cell].lower() not in NO_VALUE]
    distinct = len(set(found.values.values()))
    bare = found.kind == "number" and not found.beside
    whole = bare and all(value == round(value) for value in found.values.values())
    written_out = not bare or any(not plain[cell].lstrip("+-").isdecimal() for cell in found.values) or bool(words)
    if not written_out or (whole and answers and distinct <= MOST_CODES):
        return None
    if typed and (distinct <= MOST_CODES or (bare and not words)):
        return None
    # The longest shows most of how they are written.
    example = max(islice(found.values, SAMPLE), key=lambda cell: len(plain[cell]))
    writing = Writing(found.kind, found.decimal, found.beside, found.order, tuple(words))
    values: dict[str, float | None] = {cell: found.values.get(cell) for cell in counts}
    return Recognised(writing, values, plain[example], found.undecided)


def _are_slips(others: Iterable[str], plain: Mapping[str, str], counts: Mapping[str, int], n_values: int) -> bool:
    """Whether cells that are no values are few enough to be slips or words for none, and no codes."""
    words = list(others)
    if any(_holds_digit(plain[cell]) and not _BOUND.fullmatch(plain[cell]) for cell in words):
        return False
    cells = sum(counts[cell] for cell in words)
    # Bounds such as "<0.5" may be many, as every limit of detection is one.
    different = {plain[cell].lower() for cell in words if not _BOUND.fullmatch(plain[cell])}
    few = cells <= (1 - LEAST_SHARE) * (cells + n_values) + 1e-9 or (cells == 1 and n_values > 2)
    return few and len(different) <= MOST_OTHER_WORDS


def _holds_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _as_numbers(told: Mapping[str, str], counts: Mapping[str, int], decimal: str | None) -> _Found | None:
    amounts = {cell: amount for cell, text in told.items() if (amount := _amount(text)) is not None}
    if not amounts or any(amount.is_code for amount in amounts.values()):
        return None
    if all(amount.in_brackets for amount in amounts.values()):
        # "(1)", "(2)" number something; only among others are brackets a minus.
        return None
    if (beside := _one_sign(amounts)) is None:
        return None
    read = {mark: {cell: amount.value(mark) for cell, amount in amounts.items()} for mark in (".", ",")}
    fits = {
        mark: sum(counts[cell] for cell, value in values.items() if value is not None) for mark, values in read.items()
    }
    first = decimal if decimal in (".", ",") else "."
    other = "," if first == "." else "."
    mark = other if fits[other] > fits[first] else first
    values = {cell: value for cell, value in read[mark].items() if value is not None}
    others = [cell for cell in told if cell not in values]
    if not values or not _are_slips(others, told, counts, sum(counts[cell] for cell in values)):
        return None
    if read["."] == read[","]:
        mark = first
    return _Found("number", values, decimal=mark, beside=beside)


def _one_sign(amounts: Mapping[str, _Amount]) -> str | None:
    """What stands beside the numbers of a column; None where that differs, so that they are no numbers of one kind."""
    signs = {amount.beside for amount in amounts.values()}
    if "%" in signs:
        bare = [amount for amount in amounts.values() if not amount.beside]
        # 0 is 0 %; of 12 among per cent nobody knows.
        return "%" if signs <= {"", "%"} and all(amount.value(".") == 0 for amount in bare) else None
    signs -= {""}
    return None if len(signs) > 1 else next(iter(signs), "")


def _as_dates(told: Mapping[str, str], counts: Mapping[str, int], decimal: str | None) -> _Found | None:
    days = {cell: day for cell, text in told.items() if (day := _date(text)) is not None}
    if not days:
        return None
    best: tuple[int, str, dict[str, float]] | None = None
    orders = ["ymd", "", "dmy", "mdy"] if any(day.ordered != "?" for day in days.values()) else ["dmy", "mdy"]
    fits = []
    for order in orders:
        values = {cell: value for cell, day in days.items() if (value := day.in_order(order)) is not None}
        fits.append(sum(counts[cell] for cell in values))
        if values and (best is None or fits[-1] > best[0]):
            best = (fits[-1], order, values)
    if best is None:
        return None
    fit, order, values = best
    others = [cell for cell in told if cell not in values]
    if not _are_slips(others, told, counts, fit):
        return None
    return _Found("date", values, order=order, undecided=order == "dmy" and fits.count(fit) > 1)


@cache
def _number_patterns(decimal: str, money: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Plain numbers and those with thousands; money has no three decimals, so €1.234 is more than a thousand."""
    point, thousands = (r"\.", ",") if decimal == "." else (",", r"\.")
    fraction = rf"(?:{point}(?:\d{{0,2}}|\d{{4,}}))?" if money else rf"(?:{point}\d*)?"
    plain = rf"(?:\d+{fraction}|{point}\d+)(?:[eE][-+]?\d+)?"
    grouped = rf"\d{{1,3}}(?P<t>[{thousands}' ])\d{{3}}(?:(?P=t)\d{{3}})*{fraction}"
    return re.compile(plain), re.compile(grouped)


def _in_point_notation(digits: str, decimal: str, money: bool) -> str | None:
    """Digits as Python reads them; None where they are no number with this decimal sign."""
    plain, grouped = _number_patterns(decimal, money)
    if not plain.fullmatch(digits):
        if not grouped.fullmatch(digits):
            return None
        digits = re.sub("[ ']", "", digits).replace("," if decimal == "." else ".", "")
    return digits.replace(",", ".")


def _amount(text: str) -> _Amount | None:
    match = _AMOUNT.fullmatch(text)
    if match is None or (match["open"] is None) != (match["close"] is None):
        return None
    if (match["before"] and match["after"]) or (match["minus"] and match["again"]):
        return None
    beside = (match["before"] or match["after"] or "").upper().rstrip()
    brackets = match["open"] is not None
    signed = match["minus"] or match["again"]
    if brackets and signed:
        return None
    return _Amount(match["digits"].strip(), brackets or signed == "-", _SAME_SIGN.get(beside, beside), brackets)


def _date(text: str) -> _Day | None:
    match = next((found for pattern in _DATES if (found := pattern.fullmatch(text))), None)
    if match is None:
        return None
    parts = match.groupdict()
    year = int(parts["y"])
    if len(parts["y"]) == 2:
        # As POSIX counts two digits: 69 to 99 are of the last century.
        year += 1900 if year >= 69 else 2000
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if parts["half"]:
        hour = hour % 12 + 12 * (parts["half"].lower() == "pm")
    if hour > 23 or minute > 59 or second > 59:
        return None
    share = (3600 * hour + 60 * minute + second) / 86_400
    if "a" in parts:
        return _Day(year, int(parts["a"]), int(parts["b"]), "?", share)
    if "name" in parts:
        month = _MONTHS.get(parts["name"][:3].lower())
        return None if month is None else _Day(year, int(parts["d"]), month, "", share)
    return _Day(year, int(parts["d"]), int(parts["m"]), "ymd", share)
