"""Whatever the bytes of a card are: a verdict, within seconds, and nothing written."""

import json
import os
import sys
import time

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from scoresheet import yaml12
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Malformed
from scoresheet.gate import card, output, reading
from scoresheet.gate.facts import CardFacts
from scoresheet.gate.rules import judge, judge_task_card
from tests.gate.test_rules import GOOD, PACK
from tests.strategies import json_values, text

WHOLE = yaml12.load(GOOD.encode()).value
TASK = {
    "task_id": "refund-1",
    "goal": "refund it",
    "inputs": ["a"],
    "oracle_kind": "match",
    "mutation_scope": "read_only",
    "frozen_at": "2026-11-30T12:00:00Z",
    "stale_after_hours": 24,
    "leak_flag": False,
}
OPTIONAL = {
    "triage_defaults": TASK,
    "leak_allow": [{"match_sha256": "0" * 64, "reason": "a test key"}],
    "attachments": {"mine": 1},
}
LONG_S = float(os.environ.get("SCORESHEET_FUZZ_S", "600"))

writes: list[object] = []
watching = False


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if watching and event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        writes.append(arguments[0])


sys.addaudithook(watch)


def same(path: str) -> str:
    return path


def verdict(data: bytes, path: str) -> None:
    """Read, judge and print: as `check` does, and nothing else may happen."""
    global watching
    watching = True
    started = time.process_time()
    try:
        try:
            file = reading.parse(data, path)
        except Malformed as error:
            findings = card.unreadable(path, error).findings
        else:
            facts = CardFacts(path, file.located, fixture_sha256="0" * 64, pack=PACK, git_sha_known=False)
            for_pack = judge(facts).findings
            alone = judge(CardFacts(path, file.located)).findings
            of_task = judge_task_card(facts).findings
            if not alone:
                ProtocolCard.from_value(file.located.value, path)
            if not of_task:
                TaskCard.from_value(file.located.value, path)
            assert file.kind
            findings = (*for_pack, *of_task)
        target = card_target(findings)
        for form in (output.text(target), output.as_json(target), output.junit(target)):
            form.encode()
        assert len(output.text(target).splitlines()) == 1 + 2 * len(findings) + (not findings)
        assert len(output.github(target, same).splitlines()) == len(findings)
        json.loads(output.sarif(target, "1", same))
        assert all(finding.where.startswith(path) and finding.mend for finding in findings)
    finally:
        watching = False
    assert not writes
    assert time.process_time() - started < 20


def card_target(findings):
    from scoresheet.documents.check_result import CheckTarget

    placed = tuple(map(output.finding, findings))
    return output.result([CheckTarget(target="card", kind="protocol card", ok=not findings, rules=31, findings=placed)])


@st.composite
def mutated(draw):
    """A good card's text, with pieces cut, doubled, moved or replaced."""
    data = GOOD if draw(st.booleans()) else json.dumps(draw(st.sampled_from([WHOLE, TASK])))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 30)))
        piece = draw(
            st.one_of(
                text,
                st.just(data[start:end] * 2),
                st.sampled_from(["- ", ": ", "\t", "&a ", "*a", "!!str ", "{", "[", "'", "|\n", "---\n", "\r", "\x00"]),
            )
        )
        data = data[:start] + piece + data[end:]
    return data.encode()


@st.composite
def grafted(draw):
    """A good card with any JSON value in the place of some of its members, and some of its members gone."""
    value = json.loads(json.dumps(draw(st.sampled_from([WHOLE, WHOLE | OPTIONAL, TASK]))))
    for _ in range(draw(st.integers(1, 3))):
        at = value
        while True:
            name = draw(st.one_of(st.sampled_from(sorted(at) or ["x"]), text))
            if isinstance(at.get(name), dict) and draw(st.booleans()):
                at = at[name]
                continue
            if draw(st.booleans()):
                at[name] = draw(
                    st.one_of(json_values, st.sampled_from(["TODO", [], {}, 10**3999, -1, 1e308, "x" * 999]))
                )
            else:
                at.pop(name, None)
            break
    return json.dumps(value, ensure_ascii=draw(st.booleans())).encode()


anything = st.one_of(mutated(), grafted(), st.binary(max_size=200))
suffixes = st.sampled_from(["card.yaml", "card.json"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(anything, suffixes)
def test_any_bytes_get_a_verdict(data, path):
    verdict(data, path)


@pytest.mark.long
def test_any_bytes_get_a_verdict_for_ten_minutes():
    ends = time.monotonic() + LONG_S
    rounds = 0
    while time.monotonic() < ends:
        quiet = settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        seed(rounds)(quiet(given(anything, suffixes)(verdict)))()
        rounds += 1
    print(f"{rounds * 500} cards in {LONG_S:.0f} s")


LARGEST = yaml12.MAX_BYTES
HARD = {
    "blanks inside a text": "suite: {name: 'x" + " " * 250_000 + "x'}",
    "many unknown members": "{" + ", ".join(f"wall_clock_{n:05}: 1" for n in range(10_000)) + "}",
    "many metrics": "metrics: {secondary: [" + ", ".join(f"m{n}" for n in range(20_000)) + ", m1]}",
    "many unknown parts": "leak_allow: [" + ", ".join("{resaon: x}" for _ in range(15_000)) + "]",
    "many opened brackets": "suite: " + "[" * 250_000,
    "many quotes": "suite: {name: " + "{{" * 100_000 + "}",
    "many ids in both": "dataset_split: {train_like: [%s], holdout: [%s]}" % ((",".join(map(str, range(20_000))),) * 2),
    "many lines": "\n" * 250_000,
    "a long key": "? " + "k" * 200_000 + "\n: 1\n",
    "long numbers": "controls: {seed: " + "9" * 3999 + ", wall_clock_s: " + "8" * 3999 + "}",
    "one long flow": "a: {" * 31 + "b: [" + "x," * 100_000 + "]" + "}" * 31,
}


@pytest.mark.parametrize("data", HARD.values(), ids=HARD)
def test_a_card_that_is_hard_to_judge_is_judged_in_seconds(data):
    assert len(data) <= LARGEST
    verdict(data.encode(), "card.yaml")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (WHOLE, "protocol card"),
        (TASK, "task card"),
        ({"schema": "x", **TASK}, "protocol card"),
        ({"task_id": "a", "prompt": "p", "calls": []}, "task"),
        ({}, "protocol card"),
        ([], "protocol card"),
    ],
)
def test_a_card_is_known_by_its_members(value, kind):
    assert reading.parse(json.dumps(value).encode(), "card.json").kind == kind


def test_a_json_card_has_the_places_of_its_text():
    file = reading.parse(b'{\n  "suite": {"name": "TODO"}}', "card.json")
    (finding,) = [each for each in judge(CardFacts("card.json", file.located)).findings if "suite.name" in each.what]
    assert finding.where == "card.json:2:21"


def test_a_member_with_nothing_behind_it_is_the_same_as_no_line():
    whole = GOOD.replace(
        "confound_log: required\n", "confound_log: required\n  excluded:\n  upstreams: ~\nleak_allow:\n"
    )
    file = reading.parse(whole.encode(), "card.yaml")
    assert judge(CardFacts("card.yaml", file.located)).findings == ()
    document = ProtocolCard.from_value(file.located.value, "card.yaml")
    assert document.publishing.excluded == ()
    assert TaskCard.from_value({"task_id": "a", "inputs": None}, "task.yaml").inputs == ()


@pytest.mark.parametrize(
    "text", ['{"a": ' + "9" * 5000 + "}", '{"a": -' + "9" * 5000 + "}", "[" * 50 + "]" * 50, "1" * 300_000], ids=len
)
def test_a_json_card_has_the_bounds_of_a_yaml_card(text):
    with pytest.raises(Malformed):
        reading.parse(text.encode(), "card.json")
