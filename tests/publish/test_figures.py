from fractions import Fraction as F

from scoresheet.documents.row import Row
from scoresheet.publish.decisions import of_k
from scoresheet.publish.figures import Figures, Method, ends_text, figures, figures_sha256
from scoresheet.publish.outcomes import fold
from tests.publish.runs import A, B, plan, row, rows


def found(the_rows: list[Row], method: Method = "cluster") -> Figures:
    return figures(plan(), fold(plan(), the_rows), method)


def test_figures_are_exact_fractions_of_the_planned_episodes():
    assert found(rows(A)).success.mean == F(44, 60)
    assert found(rows(A)[:-3]).planned == 60
    assert found(rows(A)[:-3]).success.mean == F(42, 60)


def test_ends_are_written_outward():
    assert ends_text(found(rows(A)).success_interval) == ["0.4552", "0.8948"]
    assert ends_text(found(rows(B)).success_interval) == ["0.3000", "0.7500"]
    assert ends_text(None) is None


def test_the_indexes_are_digested_only_when_they_were_used():
    assert found(rows(B)).index_sha256 == "a83955b80977defaae4721964adbaf57470411790415f311f16be6d2acfeae11"
    assert found(rows(A)).index_sha256 is None
    assert found(rows(B), "rows-v1").index_sha256 is None


def test_elapsed_time_is_cut_at_the_limit():
    late = [one.model_copy(update={"elapsed_s": 31.5}) for one in rows(A)]
    assert found(late).elapsed_s == 30


def test_the_cost_axis_is_of_episodes_that_ran():
    latency = found([row(recorded_latency_ms=10.25), row("t01", recorded_latency_ms=20.75)]).recorded_latency_ms
    assert latency is not None
    assert latency.mean == F(31, 2)
    assert found([]).recorded_latency_ms is None
    assert found([]).elapsed_s is None


def test_the_digest_is_a_golden_one():
    outcomes = fold(plan(), rows(B))
    there = figures(plan(), outcomes, "cluster")
    digest = figures_sha256(plan(), outcomes, there, of_k(plan(), there))
    assert digest == "8bbe92c4b20c249ed3c627b2c27f77b0e5a04566ae6949561d6f431003cac5f5"
