"""Evidence is judged once for all texts that differ in names alone, and each time as if it were read alone."""

import re

import pytest

from scoresheet import canonical
from scoresheet.run import proof
from scoresheet.run.proof import Proofs
from scoresheet.sandbox.evidence import CORE

CHECKS = tuple({"name": name, "inside": "ECONNREFUSED", "control": "reached", "verdict": "denied"} for name in CORE)


def text(namespace="net:[4026532190]", uid=1973706888, argv="ab" * 32, **more):
    value = {
        "argv_sha256": argv,
        "backend": "bwrap",
        "checks": [
            *CHECKS,
            {"name": "namespace", "inside": f"{namespace}, seen as {namespace}", "control": None, "verdict": "holds"},
            {"name": "user", "inside": str(uid), "control": None, "verdict": "holds"},
        ],
        "network_namespace": namespace,
        "reasons": [],
        "state": "proved",
        "suspended_s": 0.25,
        "uid": uid,
    }
    return canonical.pretty(value | more)


def alone(data):
    return Proofs().of(data, "evidence.json")


def test_what_is_proved_is_read():
    found = alone(text())
    assert (found.state, found.suspended_s, found.findings) == ("proved", 0.25, ())


def test_other_names_are_judged_by_what_was_judged(monkeypatch):
    proofs = Proofs()
    first = proofs.of(text(), "evidence.json")
    monkeypatch.setattr(proof, "_judged", None)
    for number in range(1, 50):
        assert proofs.of(text(f"net:[{number}]", 1_900_000_000 + number, f"{number:064x}"), "evidence.json") is first


def test_each_of_two_texts_that_differ_in_anything_else_is_judged_by_itself():
    proofs, sound = Proofs(), text()
    proofs.of(sound, "evidence.json")
    for at in range(len(sound)):
        for bit in (1, 2, 16):
            edited = bytearray(sound)
            edited[at] ^= bit
            seen, expected = proofs.of(bytes(edited), "evidence.json"), alone(bytes(edited))
            assert seen == expected, bytes(edited[max(0, at - 20) : at + 20])


@pytest.mark.parametrize(
    "more",
    [
        {"state": "not_proved"},
        {"canary_hits_inside": 1},
        {"suspended_s": 7.5},
        {"reasons": ["canary_hit"]},
        {"checks": list(CHECKS[1:])},
        {"checks": [*CHECKS, {"name": "x", "inside": "reached", "control": "reached", "verdict": "REACHED"}]},
        {"uid": None},
        {"network_namespace": ""},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_text_after_a_sound_one_says_what_it_says_alone(more):
    proofs = Proofs()
    proofs.of(text(), "evidence.json")
    assert proofs.of(text(**more), "evidence.json") == alone(text(**more))


@pytest.mark.parametrize(
    ("pattern", "put"),
    [
        (rb'"inside": "1973706888"', b'"inside": "\0u"'),
        (rb'"inside": "net:[^"]*"', b'"inside": "\0n, seen as \0n"'),
        (rb'"suspended_s": 0.25', b'"suspended_s": 1973706888.5'),
        (rb'"uid": 1973706888\n', b'"uid": 01973706888\n'),
        (rb'"uid": 1973706888\n', b'"uid": 1973706888.0\n'),
        (rb'"reasons": \[\]', b'"reasons": net:[4026532190]'),
        (rb'"argv_sha256": "[0-9a-f]*"', b'"argv_sha256": "' + b"AB" * 32 + b'"'),
        (rb'"backend"', b'"1973706888"'),
    ],
)
def test_a_text_made_to_look_like_a_sound_one_is_read_by_itself(pattern, put):
    proofs, sound = Proofs(), text()
    proofs.of(sound, "evidence.json")
    hostile = re.sub(pattern, lambda _: put, sound)
    assert hostile != sound
    assert proofs.of(hostile, "evidence.json") == alone(hostile)


def test_what_is_wrong_is_told_with_its_own_place_each_time():
    proofs = Proofs()
    for place in ("one", "two"):
        (finding,) = proofs.of(text(canary_hits_inside=1), place).findings
        assert (finding.rule, finding.where) == ("evidence-state", place)


def test_few_are_kept():
    proofs = Proofs()
    for number in range(500):
        proofs.of(text(suspended_s=number / 1024), "evidence.json")
    assert len(proofs._known) <= 64


def test_bytes_behind_a_sound_text_are_seen_though_it_was_judged_before():
    proofs = Proofs()
    proofs.of(text(), "evidence.json")
    for more in (b"x", b"{}\n", b"\n}", b'"uid": 1973706888\n}\n'):
        found = proofs.of(text() + more, "evidence.json")
        assert found == alone(text() + more)
        assert found.findings
