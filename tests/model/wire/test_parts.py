import pytest

from scoresheet.model.wire import parts


def test_a_boolean_is_no_number_and_a_string_is_none():
    assert (parts.number(True), parts.number("0"), parts.whole(False), parts.whole(1.5)) == (None,) * 4
    assert (parts.number(0), parts.whole(7.0)) == (0.0, 7)


def test_an_integer_beyond_every_double_is_no_number():
    assert parts.number(10**400) is None
    assert (parts.whole(10**400), parts.whole(-(10**5000)), parts.whole(2**70)) == (None, None, 2**70)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"error": {"type": "t", "message": "m"}}, "t", "m"),
        ({"error": {"code": 400, "message": "m"}}, "400", "m"),
        ({"error": "plain"}, "status 500", "plain"),
        ({"message": "m"}, "status 500", "m"),
        (None, "status 500", ""),
        ([1], "status 500", ""),
    ],
)
def test_errors_are_read_in_every_shape(body, kind, message):
    assert parts.failure(body, 500) == parts.Failure(kind, message)


def test_headers_are_found_whatever_their_case():
    headers = [("X-RateLimit-Remaining", "3"), ("Request-Id", "req_1")]
    assert parts.request_id(headers) == "req_1"
    assert parts.rate_limits(headers) == (("x-ratelimit-remaining", "3"),)


def test_more_tokens_than_any_call_could_spend_are_not_told():
    assert [parts.count(value) for value in (7, (1 << 40) - 1, 1 << 40, 10**300, -1)] == [7, (1 << 40) - 1, 0, 0, 0]
