import pytest
from feed.retry import Failed, attempt


def failing(times):
    calls = []

    def call():
        calls.append(1)
        if len(calls) <= times:
            raise OSError("down")
        return len(calls)

    return call, calls


def test_the_third_attempt_may_succeed():
    assert attempt(failing(2)[0]) == 3


def test_it_gives_up():
    call, calls = failing(9)
    with pytest.raises(Failed):
        attempt(call)
    assert len(calls) == 3
