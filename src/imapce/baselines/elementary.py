"""eˣ and log x in single precision that a compiler can vectorise.

A call to the C library keeps a loop from being vectorised, so here they are polynomials and shifts of exponent bits;
in double precision they are the C library's. Numba's cache looks at the file of the calling function only: after a
change here, remove the __pycache__ of the callers.

>>> exp(0.0), log(1.0)
(1.0, 0.0)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from imapce.errors import needs

with needs("Fair-NeRV", "imapce[baselines]"):
    from llvmlite import ir
    from numba import extending, types

# Compiled code is typed by Numba, not by annotations.
intrinsic: Any = extending.intrinsic
overload: Any = extending.overload

_LOG2 = math.log(2.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_PER_LOG2 = np.float32(1.0 / _LOG2)
# log 2 in two parts: the first has so few digits that its product with a small whole number is exact.
_LOG2_HIGH = np.float32(0.693359375)
_LOG2_LOW = np.float32(_LOG2 - 0.693359375)
_LOG2_SINGLE = np.float32(_LOG2)
# e⁻⁶⁰ is nothing beside 1, and far enough from the smallest normal float (e⁻⁸⁷) that products stay normal: numbers
# below it cost over a hundred cycles each.
_LEAST_EXPONENT = np.float32(-60.0)


def _coefficients(function: Any, degree: int, low: float, high: float) -> tuple[np.float32, ...]:
    series = Chebyshev.interpolate(function, degree, domain=[low, high])
    return tuple(np.float32(c) for c in series.convert(kind=Polynomial).coef)


# Measured relative errors: 2.3e-7 and 1.2e-7, two roundings of single precision and one.
_E0, _E1, _E2, _E3, _E4, _E5 = _coefficients(np.exp, 5, -_LOG2 / 2, _LOG2 / 2)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = _coefficients(
    lambda f: np.log1p(f) / f, 8, math.sqrt(0.5) - 1, math.sqrt(2.0) - 1
)


@intrinsic
def _truncated(_: Any, x: Any) -> Any:
    """x without its digits after the point, as a float."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sitofp(builder.fptosi(arguments[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.float32), code


@intrinsic
def _power_of_two(_: Any, exponent: Any) -> Any:
    """2 to a whole number between -126 and 127, written into the exponent bits of a float."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(32)
        biased = builder.add(builder.fptosi(arguments[0], whole), whole(127))
        return builder.bitcast(builder.shl(biased, whole(23)), ir.FloatType())

    return types.float32(types.float32), code


@intrinsic
def _binary_exponent(_: Any, x: Any) -> Any:
    """The whole number e for which x/2**e lies between √½ and √2, as a float; x > 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(32)
        root_half = int(np.float32(math.sqrt(0.5)).view(np.int32))
        above = builder.sub(builder.bitcast(arguments[0], whole), whole(root_half))
        return builder.sitofp(builder.ashr(above, whole(23)), ir.FloatType())

    return types.float32(types.float32), code


@intrinsic
def lesser(_: Any, a: Any, b: Any) -> Any:
    """The smaller of two numbers that are not NaN, said so that the minimum of a loop is vectorised; `min` is not."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flags = ("nnan", "nsz")
        is_less = builder.fcmp_ordered("<", *arguments, flags=flags)
        return builder.select(is_less, *arguments, flags=flags)

    return a(a, b), code


# Free reordering would join the two parts of log 2 again; a function that is called and not inlined stops vectorising.
_AS_WRITTEN: Any = {"fastmath": {"contract"}, "forceinline": True}


def exp(x: Any) -> Any:
    """eˣ for x ≤ 0; in single precision never below e⁻⁶⁰."""
    return math.exp(x)


def log(x: Any) -> Any:
    """log x for x ≥ 1."""
    return math.log(x)


@overload(exp, jit_options=_AS_WRITTEN)
def _compiled_exp(x: Any) -> Any:
    def double(x: Any) -> Any:
        return math.exp(x)

    def single(x: Any) -> Any:
        x = max(x, _LEAST_EXPONENT)
        whole = _truncated(x * _PER_LOG2 - _HALF)
        r = (x - whole * _LOG2_HIGH) - whole * _LOG2_LOW
        return _power_of_two(whole) * (_E0 + r * (_E1 + r * (_E2 + r * (_E3 + r * (_E4 + r * _E5)))))

    return single if x == types.float32 else double


@overload(log, jit_options=_AS_WRITTEN)
def _compiled_log(x: Any) -> Any:
    def double(x: Any) -> Any:
        return math.log(x)

    def single(x: Any) -> Any:
        exponent = _binary_exponent(x)
        f = x * _power_of_two(-exponent) - _ONE
        series = _L0 + f * (_L1 + f * (_L2 + f * (_L3 + f * (_L4 + f * (_L5 + f * (_L6 + f * (_L7 + f * _L8)))))))
        return exponent * _LOG2_SINGLE + f * series

    return single if x == types.float32 else double
