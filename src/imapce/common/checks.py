"""What arguments must be: whole numbers, numbers, flags, choices, seeds, matrices, labels; one sentence each, one home.

>>> as_classes("labels", ["b", "a", "b"], None)
(['a', 'b'], array([1, 0, 1]))

Every complaint names the argument it is about, which is why each function takes that name first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imapce.errors import InvalidTypeError, InvalidValueError

# Numbers of more different values are measurements, and so are those that hardly repeat.
MOST_CLASSES_OF_NUMBERS, ROWS_PER_CLASS = 20, 5


def are_classes(n_values: int, n_rows: int) -> bool:
    """Whether numbers that take so many different values in so many rows are classes; else they are a measurement.

    The one rule for labels, figures and the page: at most 20 different values, and five rows or more for each.

    >>> are_classes(15, 300), are_classes(15, 60), are_classes(30, 300)
    (True, False, False)
    """
    return n_values <= min(MOST_CLASSES_OF_NUMBERS, most_classes(n_rows))


def most_classes(n_rows: int) -> int:
    """How many classes so many rows can tell apart: five rows or more for each; two always.

    >>> most_classes(100), most_classes(3)
    (20, 2)
    """
    return max(2, n_rows // ROWS_PER_CLASS)


def is_whole(value: Any) -> bool:
    """True for a Python or numpy integer, not for a bool.

    >>> is_whole(3), is_whole(True), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_splits(n_splits: Any, *, at_least: int) -> None:
    """Refuse a number of splits that is not a whole number of at least ``at_least``.

    >>> check_splits(10, at_least=2)
    """
    if not is_whole(n_splits) or n_splits < at_least:
        raise InvalidValueError(
            "n_splits",
            f"must be a whole number of at least {at_least}",
            repr(n_splits),
            way_out="10 is the usual choice",
        )


def as_matrix(name: str, value: Any, n_rows: int | None = None) -> np.ndarray:
    """A finite float64 table of two rows or more (and of ``n_rows`` rows, when given).

    >>> as_matrix("embedding", [[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise InvalidTypeError(
            name,
            "must be a table of numbers",
            f"{type(value).__name__} ({reason})",
            way_out="convert it to a dense array",
        ) from reason
    if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise InvalidValueError(
            name,
            "must have two dimensions, two rows or more and a column",
            f"shape {matrix.shape}",
            way_out="a single column is written with reshape(-1, 1)",
        )
    if not np.all(np.isfinite(matrix)):
        bad_row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise InvalidValueError(
            name, "must be finite", f"NaN or infinity in row {bad_row}", way_out="drop or fill such rows"
        )
    if n_rows is not None and len(matrix) != n_rows:
        raise InvalidValueError(
            name, f"must have {n_rows} rows like the other table", f"{len(matrix)}", way_out="align them"
        )
    return matrix


def as_labels(name: str, value: Any, n_rows: int | None) -> np.ndarray:
    """One label per row as a flat array of whatever type, none of them missing.

    >>> as_labels("labels", [1, "a"], n_rows=2)
    array([1, 'a'], dtype=object)
    """
    # A plain list that mixes strings and numbers would become all strings; as objects each value stays what
    # it is.
    mixed = isinstance(value, list | tuple) and len({isinstance(item, str) for item in value}) > 1
    array = np.asarray(value, dtype=object) if mixed else np.asarray(value)
    if array.ndim != 1 or len(array) == 0:
        raise InvalidValueError(
            name, "must be one value per row", f"shape {array.shape}", way_out="pass a flat sequence"
        )
    if n_rows is not None and len(array) != n_rows:
        raise InvalidValueError(
            name, f"must have one value for each of {n_rows} rows", f"{len(array)}", way_out="align them"
        )
    # Only NaN and NaT differ from themselves, whatever the type.
    missing = np.array([is_missing(item) for item in array]) if array.dtype.kind == "O" else array != array
    if np.any(missing):
        raise InvalidValueError(
            name,
            "must not have missing values",
            f"one in row {int(np.flatnonzero(missing)[0])}",
            way_out="drop such rows or give them a label of their own",
        )
    return array


def as_classes(name: str, value: Any, n_rows: int | None) -> tuple[list[Any], np.ndarray]:
    """The distinct labels, sorted where they can be, and the place of each row's label among them.

    >>> as_classes("labels", [None, "a"], None)
    Traceback (most recent call last):
    imapce.errors.InvalidValueError: labels must not have missing values, got one in row 0: ...
    """
    array = as_labels(name, value, n_rows)
    try:
        classes, codes = np.unique(array, return_inverse=True)
        return classes.tolist(), codes
    except TypeError:
        places = {item: place for place, item in enumerate(dict.fromkeys(array.tolist()))}
        return list(places), np.array([places[item] for item in array.tolist()])


def as_codes(name: str, value: Any, n_rows: int | None) -> np.ndarray:
    """The place of each row's label among the distinct labels.

    >>> as_codes("labels", [10, -1, 10], None)
    array([1, 0, 1])
    """
    return as_classes(name, value, n_rows)[1]


def is_missing(item: Any) -> bool:
    """Whether a label stands for nothing: None, NaN, NaT or pandas' NA.

    >>> is_missing(float("nan")), is_missing("")
    (True, False)
    """
    # pandas' NA refuses to be compared, so it is known by its type; pandas itself is not needed for that.
    return item is None or type(item).__name__ == "NAType" or bool(item != item)


def random_generator(random_state: Any) -> np.random.RandomState:
    """scikit-learn's reading of `random_state`, in one sentence where it cannot be used."""
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            "random_state", "must be None, a whole number from 0 to 2**32 - 1 or a RandomState", repr(random_state)
        ) from error


def require_count(name: str, value: Any) -> int:
    """A whole number of at least 1.

    >>> require_count("n_starts", 3)
    3
    """
    if not is_whole(value):
        raise InvalidTypeError(name, "must be a whole number", repr(value))
    if value < 1:
        raise InvalidValueError(name, "must be at least 1", str(value))
    return int(value)


def is_number(value: Any) -> bool:
    """True for a Python or numpy number, not for a bool.

    >>> is_number(0.5), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def require_number(name: str, value: Any, *, infinite: bool = False, negative: bool = False) -> None:
    """A finite number that is not negative; ∞ or a negative one only where that is said.

    >>> require_number("alpha", 1.0)
    >>> require_number("alpha", np.inf, infinite=True)
    """
    if not is_number(value):
        raise InvalidTypeError(name, "must be a number", repr(value))
    rules = [*([] if infinite else ["finite"]), *([] if negative else ["not negative"])]
    if np.isnan(value) or ("finite" in rules and np.isinf(value)) or ("not negative" in rules and value < 0):
        raise InvalidValueError(name, f"must be {' and '.join(rules)}", repr(value))


def require_number_or_rule(name: str, value: Any, rules: tuple[str, ...], **also: bool) -> None:
    """A number as `require_number` wants it, `also` said as there, or one of some words.

    >>> require_number_or_rule("mu", "auto", ("auto", "paper"))
    >>> require_number_or_rule("mu", -3.0, ("auto", "paper"), negative=True)
    """
    if not isinstance(value, str):
        require_number(name, value, **also)
    elif value not in rules:
        *first, last = ["a number", *(f'"{rule}"' for rule in rules)]
        raise InvalidValueError(name, f"must be {', '.join(first)} or {last}", repr(value))


def require_weight(kind: str, value: Any) -> None:
    """The weight of a prior: a positive, finite number.

    >>> require_weight("Subset", 2.0)
    """
    if not is_number(value):
        raise InvalidTypeError(f"{kind}(weight=...)", "must be a number", repr(value))
    if not (np.isfinite(value) and value > 0):
        raise InvalidValueError(f"{kind}(weight=...)", "must be positive and finite", repr(value))


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """One of some words.

    >>> require_choice("rank", "auto", ("auto", "objective"))
    """
    if value not in choices:
        raise InvalidValueError(name, f"must be one of {', '.join(map(repr, choices))}", repr(value))


def require_truth(name: str, value: Any) -> None:
    """True or False and nothing else.

    >>> require_truth("standardize", False)
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidTypeError(name, "must be True or False", repr(value))


def require_flag(name: str, value: Any) -> None:
    """True, False or, as scikit-learn has it for `verbose`, a whole number.

    >>> require_flag("verbose", 1)
    """
    if not isinstance(value, (bool, np.bool_, int)):
        raise InvalidTypeError(name, "must be True or False", repr(value))


def require_verbose(value: Any) -> None:
    """A flag, or a function that is called with progress.

    >>> require_verbose(print)
    """
    if not (callable(value) or isinstance(value, (bool, np.bool_, int))):
        raise InvalidTypeError("verbose", "must be True, False or a function", repr(value))


def require_seed(value: Any) -> int | None:
    """None or a whole number from 0.

    >>> require_seed(7)
    7
    """
    if value is not None and not is_whole(value):
        raise InvalidTypeError("random_state", "must be None or a whole number", repr(value))
    if value is not None and value < 0:
        raise InvalidValueError("random_state", "must not be negative", str(value))
    return None if value is None else int(value)
