"""Trying again, a bounded number of times."""


class Failed(Exception):
    """Every attempt failed; the last failure is its cause."""


def attempt(call, attempts=3, wait=lambda seconds: None, first_wait_s=1):
    """What `call` returns, tried at most `attempts` times with doubling waits between; raises Failed."""
    wait_s = first_wait_s
    for number in range(1, attempts):
        try:
            return call()
        except OSError as error:
            last = error
        wait(wait_s)
        wait_s *= 2
    raise Failed(f"gave up after {attempts} attempts") from last
