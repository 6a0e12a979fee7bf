"""What bwrap says on machines that can't isolate, and what people are told."""

from pathlib import Path

import pytest

from scoresheet.sandbox.refusal import CODES, Machine, classify, refuse, version

PLAIN = Machine(apparmor_restricts=False, user_namespaces_off=False, container=False)


@pytest.mark.parametrize(
    ("said", "machine", "code"),
    [
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", PLAIN, "proc-masked"),
        ("bwrap: Creating new namespace failed: No space left on device", PLAIN, "userns-off"),
        ("bwrap: No permissions to create new namespace", Machine(False, True, False), "userns-off"),
        ("bwrap: setting up uid map: Permission denied", Machine(True, False, False), "userns-apparmor"),
        ("bwrap: No permissions to create a new namespace", Machine(False, False, True), "userns-container"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", PLAIN, "netns"),
        (
            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
            Machine(True, False, False),
            "userns-apparmor",
        ),
        ("bwrap: Unknown option --disable-userns", PLAIN, "bwrap-too-old"),
        ("bwrap: Can't make symlink at /bin: File exists", PLAIN, "sandbox-failed"),
        ("", PLAIN, "sandbox-failed"),
    ],
)
def test_what_bwrap_says_gets_its_code_and_a_mend(said, machine, code):
    error = classify(said, machine)
    assert error.code == code
    assert str(error).startswith(f"{code}: ")
    assert error.mend
    assert error.exit_code == 3
    assert (said or "bwrap said nothing") in str(error)


def test_every_code_is_described_with_its_mend():
    page = (Path(__file__).parents[2] / "docs/isolation.md").read_text()
    for code in CODES:
        assert f"### {code}\n" in page
        if code != "isolation-not-proved":
            assert refuse(code).mend in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bubblewrap 0.8.0", (0, 8, 0)),
        ("bubblewrap 0.11.0", (0, 11, 0)),
        ("bubblewrap 1.0", (1, 0)),
        ("gVisor bwrap", None),
        ("bubblewrap x.y", None),
        ("", None),
    ],
)
def test_a_version_is_read_or_not(text, expected):
    assert version(text) == expected
