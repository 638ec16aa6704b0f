"""Tables in which nothing is to be found, by kind and seed: numbers, counts, answers, categories, flags.

>>> len(KINDS), noise("Gaussian", 0).shape == noise("Gaussian", 0).shape
(17, True)

A table is 100 to 2,000 rows of 3 to 80 columns, both drawn evenly on a logarithmic scale; the same kind and seed give
the same table. Only numbers come as an array; categories and flags as an Arrow table. Nothing here imports imapce.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int]
Draw = Callable[[np.random.Generator, Shape], Any]

ROWS, COLUMNS = (100, 2_000), (3, 80)
LEVELS = (2, 10)
# What is zero of a sparse table and of a zero-inflated one.
MOSTLY, HALF = 0.95, 0.5


def shape_of(rng: np.random.Generator) -> Shape:
    """Rows and columns of a table, drawn evenly on a logarithmic scale."""
    rows, columns = (round(float(np.exp(rng.uniform(*np.log(bounds))))) for bounds in (ROWS, COLUMNS))
    return rows, columns


def correlated(rng: np.random.Generator, shape: Shape) -> Array:
    """Gaussian rows with a random covariance."""
    return np.asarray(rng.standard_normal(shape) @ rng.standard_normal((shape[1], shape[1])))


def multivariate_t(rng: np.random.Generator, shape: Shape, freedom: int = 4) -> Array:
    """Rows of a multivariate t: all columns of a row are far out together."""
    return np.asarray(rng.standard_normal(shape) / np.sqrt(rng.chisquare(freedom, (shape[0], 1)) / freedom))


def mixed_uniforms(rng: np.random.Generator, shape: Shape) -> Array:
    """Uniform sources, as many as columns, mixed by a random matrix: one box seen askew."""
    return np.asarray(rng.random(shape) @ rng.standard_normal((shape[1], shape[1])))


def one_factor(rng: np.random.Generator, shape: Shape) -> Array:
    """One hidden number behind all columns, as size is behind measurements, and noise."""
    return np.asarray(2 * np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1])) + _normal(rng, shape))


def categories(rng: np.random.Generator, shape: Shape, prefix: str = "kind") -> dict[str, pa.Array]:
    """Independent categories of 2 to 10 levels, some of which are rare."""
    columns = {}
    for place in range(shape[1]):
        count = int(rng.integers(LEVELS[0], LEVELS[1] + 1))
        drawn = rng.choice(count, shape[0], p=rng.dirichlet(np.full(count, 2.0)))
        columns[f"{prefix}{place}"] = pa.array([f"level {one}" for one in drawn]).dictionary_encode()
    return columns


def flags(rng: np.random.Generator, shape: Shape) -> dict[str, pa.Array]:
    """Independent booleans, true in 10 to 90 % of the rows."""
    return {f"yes{place}": pa.array(rng.random(shape[0]) < rng.uniform(0.1, 0.9)) for place in range(shape[1])}


def beside_numbers(draw: Callable[[np.random.Generator, Shape], dict[str, pa.Array]]) -> Draw:
    """The same columns, at least one, beside at least as many of Gaussian numbers."""

    def drawn(rng: np.random.Generator, shape: Shape) -> pa.Table:
        count = int(rng.integers(1, max(2, shape[1] // 2 + 1)))
        numbers = _normal(rng, (shape[0], shape[1] - count))
        return pa.table({f"x{j}": column for j, column in enumerate(numbers.T)} | draw(rng, (shape[0], count)))

    return drawn


def sparse(rng: np.random.Generator, shape: Shape) -> Array:
    """95 % zeros; the others normal in one half of the tables, lognormal in the other."""
    values = _normal(rng, shape) if rng.random() < 0.5 else rng.lognormal(size=shape)
    return np.where(rng.random(shape) < MOSTLY, 0.0, values)


def answers(rng: np.random.Generator, shape: Shape) -> Array:
    """Answers 1 to 5, each question with shares of its own."""
    shares = rng.dirichlet(np.full(5, 3.0), shape[1])
    return np.column_stack([rng.choice(5, shape[0], p=one) + 1.0 for one in shares])


def zero_inflated(rng: np.random.Generator, shape: Shape) -> Array:
    return np.where(rng.random(shape) < HALF, 0.0, rng.lognormal(size=shape))


def _normal(rng: np.random.Generator, shape: Shape) -> Array:
    return rng.standard_normal(shape)


KINDS: dict[str, Draw] = {
    "Gaussian": _normal,
    "uniform": lambda rng, shape: rng.random(shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "t(3)": lambda rng, shape: rng.standard_t(3, size=shape),
    "multivariate t(4)": multivariate_t,
    "correlated Gaussian": correlated,
    "mixed uniforms": mixed_uniforms,
    "one factor": one_factor,
    "categories": lambda rng, shape: pa.table(categories(rng, shape)),
    "categories beside numbers": beside_numbers(categories),
    "booleans": lambda rng, shape: pa.table(flags(rng, shape)),
    "booleans beside numbers": beside_numbers(flags),
    "sparse": sparse,
    "Poisson(.05)": lambda rng, shape: rng.poisson(0.05, shape).astype(np.float64),
    "Poisson(1)": lambda rng, shape: rng.poisson(1.0, shape).astype(np.float64),
    "Likert": answers,
    "zero-inflated": zero_inflated,
}


def noise(kind: str, seed: int) -> Any:
    """One table of noise: an array, or an Arrow table where there are categories or booleans.

    >>> table = noise("categories beside numbers", 1)
    >>> len({str(column.type) for column in table.columns})
    2
    """
    # By name, so that a kind keeps its tables when others join.
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    return KINDS[kind](rng, shape_of(rng))
