"""Student's t and the normal distribution, in decimal arithmetic.

The platform's `erfc` and `lgamma` differ in their last bits from one C library to the next; decimal arithmetic does
not, so two hosts print the same digits. Pure.
"""

from decimal import Context, Decimal, localcontext
from functools import lru_cache

DIGITS = 40
"""Significant digits that the functions here give."""
_GUARD = 15
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def context(digits: int) -> Context:
    """Decimal arithmetic of so many digits that the caller's own context can't change."""
    return Context(prec=digits, Emax=999_999, Emin=-999_999)


def normal_cdf(x: Decimal) -> Decimal:
    """P(Z <= x) as `1/2 + phi(x) (x + x³/3 + x⁵/(3·5) + …)`: terms of one sign (Abramowitz & Stegun 26.2.11)."""
    tail = int(float(x) ** 2 / 4) + 1  # the tail is about 10 ** -(x² / 4.6): as many digits cancel
    with localcontext(context(DIGITS + _GUARD + tail)):
        term = total = x
        odd = 1
        while term and abs(term) > abs(total) * Decimal(10) ** -(DIGITS + _GUARD + tail):
            odd += 2
            term = term * x * x / odd
            total += term
        density = (-x * x / 2).exp() / (2 * PI).sqrt()
        return _rounded(Decimal("0.5") + density * total)


def t_cdf(t: Decimal, df: int) -> Decimal:
    """P(T <= t) with a whole number of degrees of freedom: the finite sums of Abramowitz & Stegun 26.7.3 and 26.7.4."""
    with localcontext(context(DIGITS + _GUARD)):
        return _rounded(_t_cdf(t, df))


@lru_cache(maxsize=1024)
def t_quantile(p: Decimal, df: int) -> Decimal:
    """The t with P(T <= t) = p, for 0 < p < 1 and df >= 1; `t_quantile(Decimal("0.975"), 11)` is 2.2009851600…

    Newton's method, kept inside a bracket by bisection. Rounding to `DIGITS` hides the way it came.
    """
    if not 0 < p < 1 or df < 1:
        raise ValueError("a quantile needs 0 < p < 1 and df >= 1")
    with localcontext(context(DIGITS + _GUARD)):
        if p < Decimal("0.5"):
            return t_quantile(1 - p, df).copy_negate()
        low, high = Decimal(0), Decimal(2)
        while _t_cdf(high, df) < p:
            low, high = high, high * 2
        t = (low + high) / 2
        for _ in range(200):
            below = _t_cdf(t, df) - p
            low, high = (t, high) if below < 0 else (low, t)
            step = t - below / _t_density(t, df)
            following = step if low <= step <= high else (low + high) / 2
            if abs(following - t) <= Decimal(10) ** -(DIGITS + 5):
                break
            t = following
        return _rounded(t)


def _t_cdf(t: Decimal, df: int) -> Decimal:
    square = df / (df + t * t)  # cos² of the angle whose tangent is t / sqrt(df)
    sine = t / (df + t * t).sqrt()
    half = Decimal("0.5")
    if df % 2 == 0:
        term = total = Decimal(1)
        for j in range(2, df, 2):
            term = term * square * (j - 1) / j
            total += term
        return half + sine * total / 2
    angle = _atan(t / Decimal(df).sqrt())
    total = Decimal(0)
    if df > 1:
        term = total = square.sqrt()
        for j in range(3, df, 2):
            term = term * square * (j - 1) / j
            total += term
    return half + (angle + sine * total) / PI


@lru_cache(maxsize=64)
def _t_peak(df: int) -> Decimal:
    """The density at 0: `gamma((df+1)/2) / (sqrt(df·pi) gamma(df/2))`, by its recurrence in steps of two."""
    peak = 1 / PI if df % 2 else Decimal(1) / 2  # sqrt(df) times the density, at df = 1 and df = 2
    for j in range(3 if df % 2 else 4, df + 1, 2):
        peak = peak * (j - 1) / (j - 2)
    return peak / Decimal(df).sqrt()


def _t_density(t: Decimal, df: int) -> Decimal:
    base = 1 + t * t / df
    power: Decimal = base ** ((df + 1) // 2)
    return _t_peak(df) / (power if df % 2 else power * base.sqrt())


def _atan(x: Decimal) -> Decimal:
    halvings = 0
    while abs(x) > Decimal("0.01"):
        x = x / (1 + (1 + x * x).sqrt())  # atan(x) = 2 atan(x / (1 + sqrt(1 + x²)))
        halvings += 1
    term = total = x
    odd = 1
    while term and abs(term) > abs(total) * Decimal(10) ** -(DIGITS + _GUARD):
        odd += 2
        term = -term * x * x
        total += term / odd
    return total * (1 << halvings)


def _rounded(value: Decimal) -> Decimal:
    return value.normalize(context(DIGITS))
