"""The card's rules against the published texts, and the table of cards that other checkers pass."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scoresheet import digest, yaml12
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.errors import Malformed
from scoresheet.gate import card, reading
from scoresheet.gate.facts import CardFacts, PackFacts
from scoresheet.gate.rules import RULES, judge

VECTORS = Path(__file__).parents[1] / "vectors"
CASES = json.loads((VECTORS / "validator_texts.json").read_text())["cases"]

GOOD = """\
schema: agent-eval-protocol/v1
suite:
  name: refunds
  git_sha: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  fixture_hash: db4b4d0d1cb480bf9aeea253771c00febe627f236765fa37d6a5614f079a3aa0
  license: MIT
  source: internal bugs
  contamination_note: never public
  task_count: 3
  taxonomy: {bugfix: 3}
  origins: {internal-bug: [t0, t1, t2]}
dataset_split:
  train_like: [t0]
  holdout: [t1, t2]
metrics:
  primary: holdout pass@1 with frozen tests
  secondary: [patch size in changed lines, share of runs that exit before wall_clock_s]
  headline_scalar_allowed: false
controls:
  runtime: python-3.12
  lockfile: poetry.lock
  tool_allowlist: [read, edit]
  test_command: pytest -q
  wall_clock_s: 180
  max_tool_calls: 40
  temperature: 0.0
  seed: 7
  human_intervention: none
  parallel_jobs: 1
  network: denied
environment:
  os: debian-12
publishing:
  negative_results: required
  confound_log: required
"""
PACK = PackFacts(
    task_ids=("t0", "t1", "t2"),
    content={"t0": "0" * 64, "t1": "1" * 64, "t2": "2" * 64},
    origins={},
    tools=("read",),
    timeout_s=180,
    seed=7,
    retries=0,
    test_commands={"t1": "pytest -q"},
    kinds=frozenset({"workspace"}),
)


RULE_IDS = (
    *("card-mapping", "card-schema", "card-empty", "card-holdout", "card-type", "card-unknown", "card-git-sha"),
    *("card-fixture-hash", "card-human", "card-network", "card-wall-clock", "card-publishing"),
    *("metrics-headline", "metrics-primary", "metrics-required-secondary", "metrics-two-secondaries"),
    *("metrics-forbidden", "metrics-retries", "metrics-computable"),
    *("split-overlap", "split-duplicates", "split-known", "split-content", "split-count", "split-origins"),
    *("pack-tools", "pack-test-command", "pack-clock", "pack-seed", "pack-retries"),
)


def findings(text: str, **held: Any) -> list[str]:
    return [f.what for f in judge(CardFacts("card.yaml", yaml12.load(text.encode()), **held)).findings]


def lines_of(card: dict[str, Any], fixture: str | None) -> list[str]:
    sha256 = digest.of(fixture.encode()) if fixture is not None else None
    return findings(json.dumps(card), fixture_sha256=sha256)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_published_line_is_printed(case):
    published = [line.removeprefix("  - ") for line in case["published_lines"] if line.startswith("  - ")]

    ours = lines_of(case["card"], case["fixture_text"])

    assert [line for line in ours if line in published] == published


@pytest.mark.parametrize("case", [case for case in CASES if case["published_exit"] != 1], ids=lambda case: case["name"])
def test_published_cards_that_pass_still_pass_when_ours_is_added(case):
    card = copy.deepcopy(case["card"])
    good = yaml12.load(GOOD.encode()).value
    card["suite"]["origins"] = good["suite"]["origins"]
    card["controls"]["network"] = "denied"
    card["controls"]["tool_allowlist"] = ["read", "edit", "bash"]
    card |= {"environment": good["environment"], "publishing": good["publishing"]}

    assert lines_of(card, case["fixture_text"]) == []


def test_a_complete_card_holds_and_reads_into_its_model():
    assert findings(GOOD, pack=PACK, git_sha_known=True) == []

    card = ProtocolCard.from_value(yaml12.load(GOOD.encode()).value, "card.yaml")
    assert card.dataset_split.holdout == ("t1", "t2")


TABLE = [
    ("human_intervention: none", "human_intervention: no", "human_intervention must be none or logged"),
    ("human_intervention: none", "human_intervention: true", "human_intervention must be none or logged"),
    ("human_intervention: none", "human_intervention: ~", "controls.human_intervention is empty"),
    (
        "headline_scalar_allowed: false",
        "headline_scalar_allowed: on",
        "metrics.headline_scalar_allowed is the text 'on', but must be true or false",
    ),
    (
        "headline_scalar_allowed: false",
        "headline_scalar_allowed: true",
        "headline_scalar_allowed must stay false for publish",
    ),
    ("human_intervention: none", "human_intervention: None", "human_intervention must be none or logged"),
    ("human_intervention: none", "human_intervention:", "controls.human_intervention is empty"),
    ("human_intervention: none", "human_intervention: [none]", "human_intervention must be none or logged"),
    (
        "headline_scalar_allowed: false",
        "headline_scalar_allowed: yes",
        "metrics.headline_scalar_allowed is the text 'yes', but must be true or false",
    ),
    ("seed: 7", "seed: 0777", "controls.seed is the text '0777', but must be a whole number"),
    ("seed: 7", "seed: 0o17", "controls.seed is the text '0o17', but must be a whole number"),
    ("seed: 7", "seed: 1:30", "controls.seed is the text '1:30', but must be a whole number"),
    ("os: debian-12", "os: 2026-11-30T", "+"),
    ("git_sha: " + "a" * 40, "git_sha: 12345e7", "suite.git_sha is the number 123450000000.0, but must be text"),
    (
        "git_sha: " + "a" * 40,
        "git_sha: 00e1234",
        "suite.git_sha '00e1234' is not a full commit id (40 or 64 hex digits)",
    ),
    ("git_sha: " + "a" * 40, "git_sha: '" + "0" * 40 + "'", "suite.git_sha " + "0" * 40 + " names no commit"),
    (
        "fixture_hash: db4b4d0d1cb480bf9aeea253771c00febe627f236765fa37d6a5614f079a3aa0",
        "fixture_hash: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "suite.fixture_hash 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' "
        "is the digest of nothing",
    ),
    *(
        ("license: MIT", f"license: '{blank}'", "suite.license is empty")
        for blank in (
            " replace_me ",
            "REPLACE-ME",
            "TODO: x",
            "TBD",
            "tba",
            "N/A",
            "<fill>",
            "${X}",
            "xxx",
            "?",
            "-",
            "...",
            "lorem",
            "TO\u200bDO",
            "\u00a0",
        )
    ),
    ("license: MIT", "license: mastodon", "+"),
    ("holdout: [t1, t2]", "holdout: []", "dataset_split.holdout must list task ids"),
    ("taxonomy: {bugfix: 3}", "taxonomy: {}", "suite.taxonomy is empty"),
    ("train_like: [t0]", "train_like:", "dataset_split.train_like is empty"),
    ("temperature: 0.0", "temperature: 0", "+"),
    (
        "taxonomy: {bugfix: 3}",
        "taxonomy: {bugfix: -3}",
        "suite.taxonomy says of 'bugfix' what is -3, but must be from 0 to 2^53-1",
    ),
    ("taxonomy: {bugfix: 3}", "taxonomy: {TODO: 3}", "suite.taxonomy names the blank 'TODO'"),
    ("holdout: [t1, t2]", "holdout: [t1, 'e\u0301', '\u00e9']", "dataset_split.holdout lists task '\u00e9' 2 times"),
    (
        "origins: {internal-bug: [t0, t1, t2]}",
        "origins: {internal-bug: [t0, t1, t2], homework: [t1]}",
        "task 't1' has two origins, 'internal-bug' and 'homework'",
    ),
    (
        "  confound_log: required",
        "  confound_log: required\n  excluded: [{tool: t, reason: TODO}]",
        "publishing.excluded.0.reason is empty",
    ),
    (
        "  confound_log: required",
        "  confound_log: required\nleak_allow: [{match_sha256: abc, reason: mine}]",
        "leak_allow.0.match_sha256 is not right: String should match pattern '^[0-9a-f]{64}$'",
    ),
    (
        "  confound_log: required",
        "  confound_log: required\ntriage_defaults: {leak_flg: false}",
        "triage_defaults.leak_flg is not a member of a task card",
    ),
    (
        "  confound_log: required",
        "  confound_log: required\ntriage_defaults: {oracle_kind: vibes}",
        "triage_defaults.oracle_kind is the text 'vibes', which is none of pytest, schema, human, match",
    ),
    (
        "headline_scalar_allowed: false",
        "headline_scalar_allowed: false\n  estimates: {human_minutes: 3}",
        "metrics.estimates.human_minutes is not a member of the card",
    ),
    ("  network: denied", "  network: denied\n  repeats: 0", "controls.repeats is empty"),
    ("seed: 7", "seed: 010", "controls.seed is the text '010', but must be a whole number"),
    ("seed: 7", "seed: 1_000", "controls.seed is the text '1_000', but must be a whole number"),
    ("seed: 7", "seed: 7.0", "controls.seed is the number 7.0, but must be a whole number"),
    ("seed: 7", "seed: true", "controls.seed is true, but must be a whole number"),
    ("seed: 7", "seed: 18446744073709551616", "controls.seed is 18446744073709551616, but must be from 0 to 2^53-1"),
    ("seed: 7", "seed: -1", "controls.seed is -1, but must be from 0 to 2^53-1"),
    ("wall_clock_s: 180", "wall_clock_s: 1:30", "controls.wall_clock_s is the text '1:30', but must be a number"),
    ("wall_clock_s: 180", 'wall_clock_s: "600"', "controls.wall_clock_s is the text '600', but must be a number"),
    ("wall_clock_s: 180", "wall_clock_s: true", "controls.wall_clock_s is true, but must be a number"),
    ("wall_clock_s: 180", "wall_clock_s: -5", "controls.wall_clock_s is -5, but must be finite and not negative"),
    ("wall_clock_s: 180", "wall_clock_s: 0", "controls.wall_clock_s is empty"),
    ("wall_clock_s: 180", "wall_clock_s: 1e9", "controls.wall_clock_s is 1000000000.0: more than a week"),
    ("git_sha: " + "a" * 40, "git_sha: 1234567", "suite.git_sha is the number 1234567, but must be text"),
    (
        "git_sha: " + "a" * 40,
        "git_sha: abcdef1",
        "suite.git_sha 'abcdef1' is not a full commit id (40 or 64 hex digits)",
    ),
    (
        "git_sha: " + "a" * 40,
        "git_sha: v1.0-dirty",
        "suite.git_sha 'v1.0-dirty' is not a full commit id (40 or 64 hex digits)",
    ),
    (
        "fixture_hash: db4b",
        "fixture_hash: xb4b",
        "suite.fixture_hash 'xb4b4d0d1cb480bf9aeea253771c00febe627f236765fa37d6a5614f079a3aa0' "
        "is not a sha256 (64 hex digits)",
    ),
    ("license: MIT", "license: ' todo: ask '", "suite.license is empty"),
    ("license: MIT", "license: ＴＯＤＯ", "suite.license is empty"),
    ("license: MIT", "license: '{{licence}}'", "suite.license is empty"),
    ("license: MIT", "license: '   '", "suite.license is empty"),
    ("license: MIT", "license: [MIT]", "suite.license is a list, but must be text"),
    ("license: MIT", "license: {spdx: MIT}", "suite.license is a mapping, but must be text"),
    ("license: MIT", "licence: MIT", "suite.licence is not a member of the card"),
    ("wall_clock_s: 180", "wall_clok_s: 180", "controls.wall_clok_s is not a member of the card"),
    (
        "schema: agent-eval-protocol/v1",
        "schema: agent-eval-protocol/v2",
        "schema is 'agent-eval-protocol/v2', but these are the rules of agent-eval-protocol/v1",
    ),
    ("taxonomy: {bugfix: 3}", "taxonomy: {bugfix: 2}", "suite.taxonomy sums to 2, but suite.task_count is 3"),
    (
        "taxonomy: {bugfix: 3}",
        "taxonomy: {bugfix: true}",
        "suite.taxonomy says of 'bugfix' what is true, but must be a whole number",
    ),
    ("task_count: 3", "task_count: 4", "suite.task_count is 4, but the splits list 3 tasks"),
    ("holdout: [t1, t2]", "holdout: [t0, t1, t2]", "task 't0' is in holdout and in train_like"),
    ("holdout: [t1, t2]", "holdout: [t1, t2, ' t2 ']", "dataset_split.holdout lists task 't2' 2 times"),
    (
        "holdout: [t1, t2]",
        "holdout: [t1, 2]",
        "dataset_split.holdout holds the number 2 at position 2, but must be a list of text",
    ),
    ("holdout: [t1, t2]", "holdout: t1", "dataset_split.holdout is the text 't1', but must be a list of text"),
    ("origins: {internal-bug: [t0, t1, t2]}", "origins: {internal-bug: [t0, t1]}", "holdout task 't2' has no origin"),
    ("origins: {internal-bug:", "origins: {twitter:", "suite.origins knows no 'twitter'"),
    (
        "primary: holdout pass@1 with frozen tests",
        "primary: accuracy",
        "metrics.primary says 'accuracy', which this must never be called",
    ),
    (
        "primary: holdout pass@1 with frozen tests",
        "primary: holdout pass@1",
        "metrics.primary 'holdout pass@1' is not in the decision table",
    ),
    (
        "secondary: [patch size in changed lines,",
        "secondary: [robustness,",
        "metrics.secondary lacks 'patch size in changed lines', "
        "which 'holdout pass@1 with frozen tests' needs beside it",
    ),
    (
        ", share of runs that exit before wall_clock_s]",
        "]",
        "metrics.secondary lists 1 metric, but at least two stand beside a primary",
    ),
    (
        "share of runs that exit before wall_clock_s]",
        "holdout pass@1 with frozen tests]",
        "metrics.secondary repeats the primary",
    ),
    (
        "negative_results: required",
        "negative_results: optional",
        "publishing.negative_results is 'optional', but must be required",
    ),
    ("  confound_log: required\n", "", "publishing.confound_log is empty"),
    ("network: denied", "network: open", "controls.network is 'open', but must be denied or model_only"),
    (
        "tool_allowlist: [read, edit]",
        "tool_allowlist: read",
        "controls.tool_allowlist is the text 'read', but must be a list of text",
    ),
    (
        "tool_allowlist: [read, edit]",
        "tool_allowlist: [REPLACE_ME]",
        "controls.tool_allowlist holds the blank 'REPLACE_ME' at position 1",
    ),
    (
        "  network: denied",
        "  network: denied\n  retries: 2",
        "controls.retries is 2, but metrics.primary 'holdout pass@1 with frozen tests' is the first attempt's",
    ),
]


@pytest.mark.parametrize(("before", "after", "what"), TABLE, ids=[row[1] or "-" + row[0] for row in TABLE])
def test_a_card_that_is_wrong_in_one_place_is_told_so(before, after, what):
    assert before in GOOD
    found = findings(GOOD.replace(before, after))
    assert found == [] if what == "+" else what in found


UNREADABLE = [
    (b"suite: {name: a}\nsuite: {name: b}\n", "2:1", "key 'suite' is given twice, first at 1:1"),
    (b"suite:\n  name: a\n  name: b\n", "3:3", "key 'name' is given twice, first at 2:3"),
    (b"a: &x [1]\n", "1:4", "anchors are not allowed"),
    (b"a: *x\n", "1:4", "aliases are not allowed"),
    (b"a: {<<: {b: 1}}\n", "1:5", "merge keys are not allowed"),
    (b"a: !!str 1\n", "1:4", "tag tag:yaml.org,2002:str is not allowed"),
    (b"%YAML 1.1\n---\na: 1\n", "1:1", "directives are not allowed"),
    (b"a: 1\n---\nb: 1\n", "2:1", "a second document follows"),
    (b"", "1:1", "the document is empty"),
    (b"a: " + b"[" * 3000, "", "nested more than 32 levels deep"),
    (b"a: x" + b"y" * 300_000, "1:1", "larger than 256 KiB"),
    (b"\xef\xbb\xbfa: 1\n", "1:1", "a byte order mark stands before the text"),
    (b"a:\n\tb: 1\n", "2:1", "found character that cannot start any token"),
    (b"? [a]\n: 1\n", "1:3", "a key must be a string"),
    (b"a: .nan\n", "1:4", ".nan is not a JSON number"),
    (b"a: .inf\n", "1:4", ".inf is not a JSON number"),
    (b"a: \xff\n", "1:4", "not UTF-8"),
]


@pytest.mark.parametrize(("data", "place", "what"), UNREADABLE, ids=[row[2] + row[1] for row in UNREADABLE])
def test_a_card_that_loaders_guess_at_is_refused_with_its_place(data, place, what):
    with pytest.raises(Malformed) as refused:
        reading.parse(data, "card.yaml")
    (finding,) = card.unreadable("card.yaml", refused.value).findings
    assert finding.what == what
    assert finding.where.startswith(f"card.yaml:{place}")
    assert finding.mend


def test_windows_line_endings_change_nothing():
    assert findings(GOOD.replace("\n", "\r\n")) == []


PACK_TABLE = [
    (
        "origins: {internal-bug: [t0, t1, t2]}",
        "origins: {internal-bug: [t0, t1, t2, t9]}",
        "suite.origins lists 't9', which is no task of the pack",
    ),
    ("holdout: [t1, t2]", "holdout: [t1, t9]", "dataset_split.holdout lists 't9', which is no task of the pack"),
    ("holdout: [t1, t2]", "holdout: [t1]", "1 of the pack's tasks are in no split, such as 't2'"),
    ("tool_allowlist: [read, edit]", "tool_allowlist: [edit]", "the pack offers read, outside controls.tool_allowlist"),
    (
        "test_command: pytest -q",
        "test_command: pytest",
        "controls.test_command is 'pytest', but task 't1' runs 'pytest -q'",
    ),
    ("wall_clock_s: 180", "wall_clock_s: 60", "controls.wall_clock_s is 60, but the manifest's timeout_s is 180"),
    ("seed: 7", "seed: 8", "controls.seed is 8, but the manifest's seed is 7"),
    ("  network: denied", "  network: denied\n  retries: 1", "controls.retries is 1, but the manifest's retries are 0"),
]


@pytest.mark.parametrize(("before", "after", "what"), PACK_TABLE, ids=[row[2] for row in PACK_TABLE])
def test_a_card_that_its_pack_contradicts_is_told_so(before, after, what):
    assert before in GOOD
    assert what in findings(GOOD.replace(before, after), pack=PACK)


def test_a_copied_task_in_both_splits_is_found_by_its_content():
    twin = PackFacts(
        **{**{name: getattr(PACK, name) for name in PACK.__slots__}, "content": dict.fromkeys(PACK.content, "0" * 64)}
    )

    assert "holdout task 't1' has the same content as train_like task 't0'" in findings(GOOD, pack=twin)


def test_a_commit_that_the_repository_does_not_hold_is_found():
    assert findings(GOOD, git_sha_known=False) == ["suite.git_sha " + "a" * 40 + " is not in this repository"]


@pytest.mark.parametrize("spelling", ["sha256:{}", "{}", "SHA256:{}"])
def test_the_fixture_hash_may_be_spelt_with_its_prefix_and_in_any_case(spelling):
    sha256 = "db4b4d0d1cb480bf9aeea253771c00febe627f236765fa37d6a5614f079a3aa0"
    text = GOOD.replace(sha256, spelling.format(sha256.upper()))

    assert findings(text, fixture_sha256=sha256) == []


@pytest.mark.parametrize("text", ["[]", "word", "3", "- a"])
def test_a_card_that_is_no_mapping_is_one_finding(text):
    assert len(findings(text)) == 1


def test_every_finding_has_a_place_and_a_mend():
    judged = judge(CardFacts("card.yaml", yaml12.load(b"suite: {name: TODO, git_sha: [1]}\ncontrols: 3\n")))

    assert judged.rules == len(RULES)
    assert len(judged.findings) > 20
    assert all(f.where.startswith("card.yaml:") and f.mend and f.rule for f in judged.findings)
    assert "card.yaml:1:15" in {f.where for f in judged.findings}


def test_an_allowed_tool_or_a_task_may_begin_like_a_blank():
    text = GOOD.replace("[read, edit]", "[todo_write, xxx-1, na]").replace("t1", "todo-app.1")
    assert findings(text) == ["controls.tool_allowlist holds the blank 'na' at position 3"]


def test_the_docs_quote_every_rule_in_its_own_words():
    """Each section of docs/gates has a `Says:` line, and a card that makes the rule say just that."""
    page = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")
    quoted = dict(re.findall(r"### ([a-z-]+)\n(?:(?!\n#).)*?\nSays: `(.*?)`\n", page, re.DOTALL))
    said: dict[str, set[str]] = {}
    for text, held in quotable():
        for finding in judge(CardFacts("card.yaml", yaml12.load(text.encode()), **held)).findings:
            said.setdefault(finding.rule, set()).add(finding.what)
    for rule in RULE_IDS:
        assert quoted[rule] in said[rule]


def quotable():
    """Cards that break each rule, with what they are held against."""
    yield "[]", {}
    for before, after, _ in TABLE:
        yield GOOD.replace(before, after), {}
    for before, after, _ in PACK_TABLE:
        yield GOOD.replace(before, after), {"pack": PACK}
    yield GOOD, {"fixture_sha256": digest.of(b"other bytes")}
    yield GOOD, {"pack": replace(PACK, content=dict.fromkeys(PACK.content, "0" * 64))}
    yield GOOD, {"pack": replace(PACK, kinds=frozenset({"replay"}))}


def test_a_primary_that_the_pack_cannot_give_is_named_with_what_is_missing():
    assert findings(GOOD, pack=replace(PACK, test_commands={})) == [
        "metrics.primary 'holdout pass@1 with frozen tests' needs frozen tests, "
        "and no task has an oracle of kind pytest"
    ]
    tokens = GOOD.replace("holdout pass@1 with frozen tests", "tokens + wall clock per passing task")
    assert set(findings(tokens)) >= {
        "metrics.primary needs metrics.estimates.human_minutes_per_task, which is not there",
        "metrics.primary needs the model's tokens, but controls.network is not model_only",
    }
