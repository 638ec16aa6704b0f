"""The pair sums of Fair-NeRV and Fair-t-NeRV: neighbourhoods of the rows, then cost and gradient of a map.

Rows come sorted by class, so that a class is a range of columns and the loops over pairs have no branches; what needs
all classes of a row happens between the loops, in double precision. A row of log P is read from memory once for each
evaluation. Written for single precision; double precision runs through the same code and is its reference.

eˣ and log x are polynomials and shifts of exponent bits in single precision: a call to the C library would keep a loop
from being vectorised. In double precision they are the C library's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from imapce.errors import needs

with needs("Fair-NeRV", "imapce[baselines]"):
    from llvmlite import ir
    from numba import extending, njit, types

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


# The smallest normal double, below which the original takes neither p nor log p.
LOG_FLOOR = -708.3964185322641
# How far a row's entropy may be from log(n_neighbors).
ENTROPY_TOLERANCE = 1e-12
# Rows nearer to one another than this share of the mean squared distance are equal.
EQUAL_BELOW = 1e-12
# Rows whose distances are computed together, so that the table is read from memory this many times less often.
_TOGETHER = 8

# Sums may be taken in any order and no value is NaN; infinities, which mean "no bound yet", stay what they are.
# A test for division by zero, as Python has it, would keep loops from being vectorised.
_compiled = njit(nogil=True, fastmath={"reassoc", "contract", "nnan", "nsz", "arcp"}, error_model="numpy", cache=True)


# --- neighbourhoods of the rows ---------------------------------------------------------------------------------------


@_compiled
def _squared_distance(a: Any, b: Any) -> Any:
    total = 0.0
    for k in range(len(a)):
        total += (a[k] - b[k]) ** 2
    return total


@_compiled
def _entropy(excess: Any, itself: int, S: float) -> Any:
    """(H, log Z, d H/d log S) of the weights exp(−excess/S), `itself` left out: by it the S of a perplexity is found.

    `excess` are squared distances beyond the smallest; beyond 745 the weight underflows.
    """
    Z = first = second = 0.0
    for j in range(len(excess)):
        scaled = excess[j] / S
        if scaled < 745.0 and j != itself:
            weight = math.exp(-scaled)
            Z += weight
            first += weight * scaled
            second += weight * scaled * scaled
    mean = first / Z
    return math.log(Z) + mean, math.log(Z), second / Z - mean * mean


@_compiled
def _scale_of_entropy(excess: Any, itself: int, target: float) -> Any:
    """S with H(S) = target: H grows with S, so Newton's step in log S is kept between two bounds."""
    S, low, high = np.mean(excess), 0.0, np.inf
    for _ in range(200):
        H, _, slope = _entropy(excess, itself, S)
        if abs(H - target) < ENTROPY_TOLERANCE:
            break
        if target < H:
            high = S
        else:
            low = S
        step = (target - H) / slope if slope > 0.0 else 100.0
        S = S * math.exp(step) if abs(step) < 3.0 else 0.0
        if not low < S < high:
            S = 2.0 * low if math.isinf(high) else (0.5 * high if low == 0.0 else math.sqrt(low * high))
    return S


@_compiled
def _scale_beyond_ties(excess: Any, itself: int, equal: float) -> Any:
    """For a row whose equals alone are n_neighbors or more, which no S satisfies: D of the nearest row that differs.

    A tiny S would satisfy p just as well, but 1/S is a factor of the gradient, and one such row would rule the map.
    """
    S = np.inf
    for j in range(len(excess)):
        if excess[j] > equal and j != itself:
            S = min(S, excess[j])
    return 1.0 if math.isinf(S) else S


@_compiled
def neighbourhoods(X: Any, n_neighbors: int, first: int, last: int, log_p: Any, S: Any, tied: Any) -> None:
    """S_i and log p_ij of the rows `first` to `last`; `tied` marks those with n_neighbors equals or more.

    p_ij = exp(−‖xᵢ − xⱼ‖²/S_i)/Z_i, S_i such that the entropy of p_i is log n_neighbors; log p_ii is left very small.
    """
    n = len(X)
    distances = np.empty((_TOGETHER, n))
    for block in range(first, last, _TOGETHER):
        rows = min(_TOGETHER, last - block)
        for j in range(n):
            for row in range(rows):
                distances[row, j] = _squared_distance(X[block + row], X[j])
        for row in range(rows):
            i = block + row
            excess = distances[row]
            equal = EQUAL_BELOW * np.mean(excess)
            excess[i] = np.inf
            nearest = np.min(excess)
            for j in range(n):
                excess[j] -= nearest
            excess[i] = 0.0
            tied[i] = np.sum(excess <= equal) - 1 >= n_neighbors
            if tied[i]:
                S[i] = _scale_beyond_ties(excess, i, equal)
            else:
                S[i] = _scale_of_entropy(excess, i, math.log(n_neighbors))
            log_Z = _entropy(excess, i, S[i])[1]
            for j in range(n):
                log_p[i, j] = -excess[j] / S[i] - log_Z
            log_p[i, i] = -1e30


# --- cost and gradient of a map ---------------------------------------------------------------------------------------


@_compiled
def _distances_from(Y: Any, i: int, out: Any) -> None:
    out[:] = 0
    for k in range(len(Y)):
        y = Y[k]
        y_i = y[i]
        for j in range(len(out)):
            out[j] += (y_i - y[j]) * (y_i - y[j])


@_compiled
def _smallest(values: Any) -> Any:
    smallest = values[0]
    for j in range(len(values)):
        smallest = lesser(values[j], smallest)
    return smallest


@_compiled
def _weigh_normal(
    distance: Any, log_p: Any, factor: Any, shift: Any, floor: Any, per_S: Any, nearest: Any, u: Any, p: Any
) -> Any:
    """For each j E = exp(l − max l) in place of the distance, u = l − log p and p, where l = −D/S; ΣE, ΣEu, Σp, Σpu."""
    Z = Zu = mass = mass_u = log_p.dtype.type(0)
    for j in range(len(distance)):
        log_p_j = max(log_p[j] + shift, floor)
        E = exp((nearest - distance[j]) * per_S)
        u_j = -distance[j] * per_S - log_p_j
        p_j = factor * exp(log_p[j])
        distance[j] = E
        u[j] = u_j
        p[j] = p_j
        Z += E
        Zu += E * u_j
        mass += p_j
        mass_u += p_j * u_j
    return Z, Zu, mass, mass_u


@_compiled
def _weigh_student(distance: Any, log_p: Any, factor: Any, shift: Any, floor: Any, one: Any, u: Any, p: Any) -> Any:
    """The same for l = −log(1 + D), where E = 1/(1 + D) can never vanish and needs no largest l."""
    Z = Zu = mass = mass_u = log_p.dtype.type(0)
    for j in range(len(distance)):
        log_p_j = max(log_p[j] + shift, floor)
        E = one / (one + distance[j])
        u_j = -log(one + distance[j]) - log_p_j
        p_j = factor * exp(log_p[j])
        distance[j] = E
        u[j] = u_j
        p[j] = p_j
        Z += E
        Zu += E * u_j
        mass += p_j
        mass_u += p_j * u_j
    return Z, Zu, mass, mass_u


@_compiled
def _pull_normal(E: Any, u: Any, p: Any, constant: Any, slope: Any, attraction: Any) -> None:
    for j in range(len(E)):
        E[j] = E[j] * (constant + slope * u[j]) + attraction * p[j]


@_compiled
def _pull_student(E: Any, u: Any, p: Any, constant: Any, slope: Any, attraction: Any) -> None:
    for j in range(len(E)):
        E[j] = E[j] * (E[j] * (constant + slope * u[j]) + attraction * p[j])


@_compiled
def _push(b: Any, y: Any, y_i: Any, columns: Any) -> Any:
    """Σ_j b_j(y_i − y_j), its terms taken from `columns`."""
    total = y.dtype.type(0)
    for j in range(len(b)):
        term = b[j] * (y_i - y[j])
        total += term
        columns[j] -= term
    return total


@_compiled
def _evaluate_rows(
    Y: Any,
    log_p: Any,
    factor: float,
    S: Any,
    bounds: Any,
    student: bool,
    weights: Any,
    first: int,
    last: int,
    gradient: Any,
    columns: Any,
    sums: Any,
) -> None:
    """The rows `first` to `last` of `evaluate`.

    With E, u = l − log p and the sums of class c, dC/dD_ij = a_ij [E_ij (constant_c + slope_c u_ij) + βτ_c p_ij]:
    one exponential per pair gives q, another p.
    """
    n, n_classes = Y.shape[1], len(bounds) - 1
    single = Y.dtype.type
    tau_in, tau_out, beta, gamma, omega = weights
    times, shift, floor, one = single(factor), single(math.log(factor)), single(LOG_FLOOR), single(1.0)
    buffers = np.empty((3, n), Y.dtype)
    pairs, u, p = buffers[0], buffers[1], buffers[2]
    Z, Zu, mass, mass_u, peak = np.empty((5, n_classes))
    log_rho, log_r = np.empty((2, n_classes))
    own = 0
    for i in range(first, last):
        while i >= bounds[own + 1]:
            own += 1
        per_S = 1.0 if student else 1.0 / S[i]
        _distances_from(Y, i, pairs)
        pairs[i] = single(1e30)
        highest = -np.inf
        for c in range(n_classes):
            low, high = bounds[c], bounds[c + 1]
            # A class of which i is the only member has no neighbours to give: r_i and ρ_i leave it out.
            if c == own and high - low == 1:
                Z[c] = 0.0
                pairs[i], u[i], p[i] = 0, 0, 0
                continue
            log_p_c, u_c, p_c = log_p[i, low:high], u[low:high], p[low:high]
            if student:
                peak[c] = 0.0
                Z[c], Zu[c], mass[c], mass_u[c] = _weigh_student(
                    pairs[low:high], log_p_c, times, shift, floor, one, u_c, p_c
                )
            else:
                nearest = _smallest(pairs[low:high])
                peak[c] = -nearest * per_S
                if c == own:
                    # i itself: far enough for a weight of zero, near enough for finite products.
                    pairs[i] = nearest + single(1000.0 * S[i])
                Z[c], Zu[c], mass[c], mass_u[c] = _weigh_normal(
                    pairs[low:high], log_p_c, times, shift, floor, single(per_S), nearest, u_c, p_c
                )
            log_r[c] = peak[c] + math.log(Z[c])
            highest = max(highest, log_r[c])
        log_Z = 0.0
        for c in range(n_classes):
            if Z[c] > 0.0:
                log_Z += math.exp(log_r[c] - highest)
        log_Z = highest + math.log(log_Z)
        divergence = g = rho_sum = 0.0
        sums[i] = 0.0
        share_own = (bounds[own + 1] - bounds[own]) / n
        for c in range(n_classes):
            if Z[c] == 0.0:
                continue
            if n_classes == 1:
                rho = 1.0
            elif c == own:
                rho = 1.0 - omega
            else:
                rho = omega * (bounds[c + 1] - bounds[c]) / n / (1.0 - share_own)
            log_rho[c] = max(math.log(rho), LOG_FLOOR) if rho > 0.0 else LOG_FLOOR
            rho_sum += rho
            log_r[c] -= log_Z
            r = math.exp(log_r[c])
            tau, place = (tau_in, 0) if c == own else (tau_out, 2)
            recall = mass[c] * log_Z - mass_u[c] + r - mass[c]
            precision = math.exp(peak[c] - log_Z) * Zu[c] - r * log_Z
            g += tau * (r - mass[c]) + (1.0 - tau) * precision
            sums[i, place] += recall
            sums[i, place + 1] += precision + mass[c] - r
            sums[i, 4] += rho * (log_rho[c] - log_r[c])
            divergence += r * (log_r[c] - log_rho[c])
        sums[i, 5] = divergence
        for c in range(n_classes):
            if Z[c] == 0.0:
                continue
            low, high = bounds[c], bounds[c + 1]
            tau = tau_in if c == own else tau_out
            # A share as small as this is nothing, and its products would be denormal, a hundred times slower.
            q = math.exp(peak[c] - log_Z) if peak[c] - log_Z > -60.0 else 0.0
            mixing = q * (gamma * rho_sum + (1.0 - gamma) * (log_r[c] - log_rho[c] - divergence))
            mixing -= gamma * math.exp(log_rho[c]) / Z[c]
            constant = 2.0 * per_S * (beta * q * (g - tau + (1.0 - tau) * log_Z) - (1.0 - beta) * mixing)
            slope = -2.0 * per_S * beta * (1.0 - tau) * q
            attraction = 2.0 * per_S * beta * tau
            b, u_c, p_c = pairs[low:high], u[low:high], p[low:high]
            if student:
                _pull_student(b, u_c, p_c, single(constant), single(slope), single(attraction))
            else:
                _pull_normal(b, u_c, p_c, single(constant), single(slope), single(attraction))
        for k in range(len(Y)):
            gradient[k, i] = _push(pairs, Y[k], Y[k, i], columns[k])


@_compiled
def evaluate(
    Y: Any,
    log_p: Any,
    factor: float,
    S: Any,
    bounds: Any,
    student: bool,
    weights: Any,
    cuts: Any,
    first: int,
    last: int,
    gradient: Any,
    columns: Any,
    sums: Any,
) -> None:
    """The cost and its gradient for the map Y (m, n) and the neighbourhoods factor·p: the parts `first` to `last`.

    `bounds` (L + 1) says where each class begins, `cuts` where each part of the rows does. Row i's own share of dC/dy_i
    goes to `gradient` (m, n), what the rows of part t do to all others to `columns[t]` (m, n). `sums` (n, 6) gets the
    row's recall and precision within its class, those with other classes, KL(ρ‖r) and KL(r‖ρ).
    """
    for part in range(first, last):
        columns[part] = 0
        _evaluate_rows(
            Y, log_p, factor, S, bounds, student, weights, cuts[part], cuts[part + 1], gradient, columns[part], sums
        )
