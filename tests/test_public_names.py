"""The rule for every public name: it says what it means, shows a running example, and is called without counting.

Public is what stands in `__all__` of the package and its public rooms, and the public methods and properties of the
classes among these, where imapce defines them. A name of a class stands for its constructor too.
"""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest

from imapce.errors import MissingExtraError

ROOMS = (
    "imapce",
    *("imapce.metrics", "imapce.plotting", "imapce.datasets", "imapce.baselines", "imapce.tables"),
    *("imapce.comparison", "imapce.exploration", "imapce.anndata"),
)
MOST_POSITIONAL = 3


def public_names() -> dict[str, Any]:
    """Every public class, function and room by its address; data such as METHODS has no docstring of its own."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            try:
                value = getattr(module, name)
            except MissingExtraError:
                # A baseline around a library that is not installed; with the extra it is looked at like all others.
                continue
            if inspect.ismodule(value):
                found[value.__name__] = value
            elif inspect.isclass(value) or inspect.isroutine(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that imapce defines for a class, in the class itself or above it."""
    for name in sorted({name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")}):
        home = next(base for base in cls.__mro__ if name in vars(base))
        member = vars(home)[name]
        kinds = (classmethod, staticmethod, property, cached_property)
        if home.__module__.startswith("imapce") and (inspect.isfunction(member) or isinstance(member, kinds)):
            yield name, member


def meaning_of(obj: Any) -> str:
    """The first paragraph of a docstring, the examples left out; a dataclass's own listing of its fields is none."""
    if inspect.isclass(obj):
        doc = vars(obj).get("__doc__") or ""
        # What @dataclass writes where the author wrote nothing.
        if dataclasses.is_dataclass(obj) and doc.startswith(f"{obj.__name__}("):
            doc = ""
        doc = inspect.cleandoc(doc)
    else:
        doc = inspect.getdoc(obj) or ""
    return " ".join(doc.split(">>>")[0].split())


def says_something(meaning: str) -> bool:
    """Whether a text has a sentence: four words or more, or a formula, up to a full stop."""
    return bool(re.search(r"(\S+\s+){3}.*[.:!?](\s|$)", meaning))


def running_examples(obj: Any) -> list[str]:
    """The examples of a docstring that are not skipped."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(obj) or "")
    return [example.source for example in examples if not example.options.get(doctest.SKIP)]


def positional(call: Callable[..., Any]) -> list[str]:
    """The parameters that can be given by position, the object itself left out."""
    if inspect.isclass(call) and call.__init__ is getattr(Exception, "__init__"):  # noqa: B009
        # An error takes its sentence, and Python knows no signature of it.
        return ["sentence"]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, parameter in inspect.signature(call).parameters.items() if parameter.kind in kinds]
    return [name for place, name in enumerate(names) if not (place == 0 and name in ("self", "cls"))]


NAMES = public_names()
MEMBERS = {
    f"{address}.{name}": member
    for address, cls in NAMES.items()
    if inspect.isclass(cls)
    for name, member in public_members(cls)
}


@pytest.mark.parametrize("address", [*NAMES, *MEMBERS])
def test_a_public_name_says_what_it_means(address: str) -> None:
    # An overriding method may leave the words to the one above it, which only the class knows.
    *_, name = address.split(".")
    obj = NAMES.get(address)
    if obj is None:
        obj = getattr(NAMES[address.removesuffix(f".{name}")], name)
    assert says_something(meaning_of(obj)), f"{address} has no sentence that says what it means: {meaning_of(obj)!r}"


@pytest.mark.parametrize("address", NAMES)
def test_a_public_name_shows_a_running_example(address: str) -> None:
    assert running_examples(NAMES[address]), f"{address} shows no example that runs"


@pytest.mark.parametrize(
    "address", [address for address, obj in {**NAMES, **MEMBERS}.items() if not isinstance(obj, property)]
)
def test_a_public_call_takes_at_most_three_by_position(address: str) -> None:
    call = NAMES.get(address, MEMBERS.get(address))
    if inspect.ismodule(call) or isinstance(call, cached_property):
        return
    if isinstance(call, classmethod | staticmethod):
        call = call.__func__
    given = positional(call)
    assert len(given) <= MOST_POSITIONAL, f"{address} takes {', '.join(given)} by position: put a * before the fourth"


def test_the_rule_finds_what_breaks_it() -> None:
    @dataclasses.dataclass
    class Bare:
        field: int

    def silent(a: int, b: int, c: int, d: int) -> None: ...

    def skipped() -> None:
        """A sentence that says something, with an example that never ran.

        >>> skipped()  # doctest: +SKIP
        """

    assert not says_something(meaning_of(Bare))
    assert not says_something(meaning_of(silent))
    assert says_something(meaning_of(skipped))
    assert not running_examples(skipped)
    assert positional(silent) == ["a", "b", "c", "d"]
    assert len(NAMES) > 50
