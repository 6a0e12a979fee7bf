"""Golden values: mpmath, 12 digits (t) and 30 digits (normal); tables of Student's t."""

from decimal import Decimal, localcontext

import pytest

from scoresheet.stats.quantile import PI, normal_cdf, t_cdf, t_quantile

P975 = Decimal("0.975")


@pytest.mark.parametrize(
    ("df", "expected"),
    [
        (4, "2.7764451052"),
        (5, "2.57058183564"),
        (7, "2.36462425159"),
        (9, "2.2621571628"),
        (11, "2.20098516009"),
        (15, "2.13144954556"),
        (29, "2.04522964213"),
        (33, "2.03451529745"),
        (99, "1.98421695159"),
        (103, "1.98326414477"),
        (499, "1.96472939099"),
        (503, "1.96469140536"),
    ],
)
def test_the_quantile_of_t_has_the_digits_that_mpmath_gives(df, expected):
    places = len(expected) - 2
    assert round(t_quantile(P975, df), places) == Decimal(expected)


@pytest.mark.parametrize(
    ("df", "upper", "power"),
    [
        (4, "2.7764451051977943578031048467486276", "0.94096457723518116911025938999129647"),
        (5, "2.5705818356363155146962462174396335", "0.91954378024082602607014327874339572"),
        (11, "2.2009851600916398678772003616965018", "0.87552997807388144790001440103424241"),
        (12, "2.1788128296672288663263443834851855", "0.87260929158813794084171322974573986"),
        (99, "1.9842169515864174951046220784633291", "0.84526703195349682053122409182728477"),
        (1000, "1.9623390808264084849985804367047926", "0.84198082216242855672808252166120773"),
    ],
)
def test_the_quantile_is_right_to_thirty_four_digits(df, upper, power):
    assert abs(t_quantile(P975, df) - Decimal(upper)) < Decimal("1e-33")
    assert abs(t_quantile(Decimal("0.8"), df) - Decimal(power)) < Decimal("1e-34")


@pytest.mark.parametrize("df", [1, 2, 3, 4, 11, 12, 99, 1000])
@pytest.mark.parametrize("p", ["0.55", "0.8", "0.975", "0.9995"])
def test_the_quantile_inverts_the_distribution(df, p):
    assert abs(t_cdf(t_quantile(Decimal(p), df), df) - Decimal(p)) < Decimal("1e-37")


def test_t_with_one_and_two_degrees_of_freedom_has_its_closed_form():
    with localcontext(prec=45):
        assert abs(t_quantile(Decimal("0.75"), 1) - 1) < Decimal("1e-38")
        assert abs(t_quantile(P975, 2) - Decimal("0.95") * (2 / (1 - Decimal("0.95") ** 2)).sqrt()) < Decimal("1e-38")


def test_a_lower_quantile_mirrors_the_upper_one():
    assert t_quantile(Decimal("0.025"), 11) == t_quantile(P975, 11).copy_negate()


@pytest.mark.parametrize(("p", "df"), [("0", 3), ("1", 3), ("0.5", 0)])
def test_what_has_no_quantile_is_an_error(p, df):
    with pytest.raises(ValueError, match="quantile"):
        t_quantile(Decimal(p), df)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ("0", "0.5"),
        ("1.96", "0.975002104851779565863415730959"),
        ("-1.96", "0.0249978951482204341365842690408"),
        ("-5", "2.86651571879193911673752332875e-7"),
        ("-15", "3.67096619931275088578608965533e-51"),
    ],
)
def test_the_normal_distribution_is_right_to_thirty_digits_also_far_in_the_tail(x, expected):
    value, known = normal_cdf(Decimal(x)), Decimal(expected)
    assert abs(value - known) <= abs(known) * Decimal("1e-29")


def test_the_callers_decimal_context_changes_no_digit():
    usual = t_quantile(P975, 17), normal_cdf(Decimal("-2.5"))
    t_quantile.cache_clear()
    with localcontext(prec=5):
        assert (t_quantile(P975, 17), normal_cdf(Decimal("-2.5"))) == usual


def test_pi_is_pi():
    assert str(PI).startswith("3.14159265358979323846264338327950288419716939937510")
