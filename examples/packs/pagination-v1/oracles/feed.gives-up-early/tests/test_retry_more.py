import pytest
from feed.retry import Failed, attempt
from test_retry import failing


def test_waits_double_and_none_follows_the_last_attempt():
    waits = []
    with pytest.raises(Failed) as caught:
        attempt(failing(9)[0], 4, waits.append, 0.5)
    assert waits == [0.5, 1, 2]
    assert isinstance(caught.value.__cause__, OSError)


def test_one_attempt_is_one():
    call, calls = failing(9)
    with pytest.raises(Failed):
        attempt(call, 1)
    assert len(calls) == 1


def test_other_failures_are_not_tried_again():
    with pytest.raises(KeyError):
        attempt(lambda: {}["x"])
