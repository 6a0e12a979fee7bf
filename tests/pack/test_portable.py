"""Names that every system can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet.pack import portable


@pytest.mark.parametrize(
    "name",
    [
        "a",
        ".hidden",
        "a.b.c",
        "-x",
        "a b",
        "é",
        "日本",
        "console",
        "com10",
        "a" * 255,
        "x.aux",
        "nula",
        "COM",
        "lpt.x",
        "..."[:0] + "..a",
    ],
)
def test_a_portable_name_has_no_fault(name):
    assert portable.fault(name) == ""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "no name"),
        (".", "no name"),
        ("..", "no name"),
        ("a/b", "separator"),
        ("a\0", "separator"),
        ("a\n", "control"),
        ("a\x7f", "control"),
        ("a\u202eb", "control"),
        ("a\u2028b", "control"),
        ("a\ufeff", "control"),
        ("\udcff", "not UTF-8"),
        ("e\u0301", "NFC"),
        ("\u212b", "NFC"),
        *((f"a{c}b", "not every system") for c in '<>:"|?*\\'),
        ("a.", "dot or a space"),
        ("a ", "dot or a space"),
        ("...", "dot or a space"),
        *(
            (name, "device")
            for name in ("con", "CON", "Aux.txt", "nul.tar.gz", "com1", "LPT9.x", "com¹", "prn", "con.")[:8]
        ),
        ("a" * 256, "255"),
        ("é" * 128, "255"),
    ],
)
def test_a_name_that_some_system_can_not_hold_is_named(name, reason):
    assert reason in portable.fault(name)


@given(st.text(st.sampled_from("conauxplt19.Aé"), max_size=8))
def test_the_everyday_names_are_those_that_a_closer_look_passes(name):
    quick = portable._EVERYDAY
    if quick.fullmatch(name):
        assert not portable._DEVICES.fullmatch(name)
        assert name[-1] not in ". "
        assert name not in (".", "..")


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["a", "b"], []),
        (["A", "a"], [("A", "a")]),
        (["a/x", "A/y"], [("a", "A")]),
        (["a/x", "a/y", "b/x"], []),
        (["straße", "STRASSE"], [("straße", "STRASSE")]),
        (["é", "É"], [("é", "É")]),
        (["a", "A/x"], [("a", "A")]),
    ],
)
def test_names_that_differ_by_case_alone_collide(paths, found):
    assert list(portable.collisions(paths)) == found
