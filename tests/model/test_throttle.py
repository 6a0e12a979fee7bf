import threading
from datetime import UTC, datetime

import pytest

from scoresheet.model.throttle import LONGEST_S, Turnstile, delay_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "headers", "tries", "delay"),
    [
        (429, {}, 0, 1.0),
        (429, {}, 3, 8.0),
        (429, {}, 6, None),  # 64 s are longer than anybody waits
        (429, {"Retry-After": "0"}, 0, 0.0),
        (429, {"retry-after": "7"}, 5, 7.0),
        (429, {"retry-after": "1.5"}, 0, 1.5),
        (429, {"retry-after-ms": "250", "retry-after": "1"}, 0, 0.25),
        (429, {"retry-after": "Mon, 30 Nov 2026 12:00:05 GMT"}, 0, 5.0),
        (429, {"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0, 0.0),
        (429, {"retry-after": str(LONGEST_S + 1)}, 0, None),
        (429, {"retry-after": "soon"}, 1, 2.0),
        (429, {"retry-after": "-1"}, 0, 1.0),
        (429, {"x-should-retry": "false", "retry-after": "1"}, 0, None),
        (503, {"retry-after": "2"}, 0, 2.0),
        (529, {"retry-after": "2"}, 0, 2.0),
        (503, {}, 0, None),
        (500, {"retry-after": "2"}, 0, None),
        (200, {"retry-after": "2"}, 0, None),
    ],
)
def test_an_answer_asks_to_wait_as_long_as_its_headers_say(status, headers, tries, delay):
    assert delay_s(status, tuple(headers.items()), tries, NOW) == delay


def never() -> bool:
    return False


def test_so_many_are_inside_and_the_others_come_in_their_order():
    turnstile = Turnstile(2)
    inside: list[int] = []
    lock, came = threading.Lock(), [threading.Event() for _ in range(6)]
    leave = [threading.Event() for _ in range(6)]
    most = []

    def through(number):
        assert turnstile.enter(never)
        with lock:
            inside.append(number)
            most.append(len(inside))
        came[number].set()
        leave[number].wait(300)
        with lock:
            inside.remove(number)
        turnstile.leave()

    threads = [threading.Thread(target=through, args=(number,)) for number in range(6)]
    for number, thread in enumerate(threads):
        thread.start()
        if number < 2:
            assert came[number].wait(300)
    for number in range(6):
        leave[number].set()
    for thread in threads:
        thread.join(300)
    assert (max(most), len(most)) == (2, 6)


def test_who_gives_up_leaves_the_queue_to_the_next():
    turnstile = Turnstile(1)
    assert turnstile.enter(never)
    assert not turnstile.enter(lambda: True)
    turnstile.leave()
    assert not turnstile.enter(lambda: True)
    assert turnstile.enter(never)


def test_without_a_limit_everybody_comes_in():
    turnstile = Turnstile()
    assert all(turnstile.enter(lambda: True) for _ in range(100))
    turnstile.leave()
