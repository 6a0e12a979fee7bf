import re
import xml.etree.ElementTree as ElementTree

import pytest

from scoresheet.publish import comparison
from scoresheet.publish.page import pictures
from scoresheet.publish.page.model import FATES, Mark, TaskRow
from tests.publish import compared
from tests.publish.page.pages import HOSTILE
from tests.publish.runs import A, B

MARKS = (
    Mark("success_mean", 0.7333, "0.7333 [0.4552, 0.8948]", 0.4552, 0.8948, "interval"),
    Mark("timeout_rate", 0.0, "0.0000 (< 0.2210)", 0.0, 0.221, "bound"),
    Mark("schema_ok_rate", 0.9833, "0.9833"),
    Mark("null baseline", 0.0, "0.0000", kind="reference"),
)


def tasks(count: int, repeats: int = 5) -> list[TaskRow]:
    fates = tuple(FATES)
    return [
        TaskRow(f"t{n:04}", tuple(fates[(n + k) % len(fates)] for k in range(repeats)), 1, repeats, "", ())
        for n in range(count)
    ]


def of(name: str, draft: bool = False) -> str:
    two = comparison.build(compared.entrants(compared.entrant(A), compared.entrant(B, "hasty")))
    match name:
        case "forest":
            return pictures.forest(MARKS, draft)
        case "map":
            return pictures.fates(tasks(12), draft)
        case "folded map":
            return pictures.fates(tasks(2000), draft)
        case "exits":
            return pictures.exits((("completed", 44), ("missing", 0)), 60, draft)
        case "curve":
            return pictures.curve(((1, 0.7, 0.7), (2, 0.8, 0.6), (3, 0.9, 0.5)), draft)
        case "latency":
            return pictures.measured(Mark("ms", 40.5, "40.5 [30, 51]", 30.0, 51.0, "interval"), "Latency", draft)
        case "differences":
            return pictures.differences(two, draft)
        case _:
            return pictures.ranks(two, draft)


NAMES = ("forest", "map", "folded map", "exits", "curve", "latency", "differences", "ranks")


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_well_formed_says_what_it_shows_and_is_the_same_each_time(name):
    drawn = of(name)
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert len(root.get("aria-label") or "") > 20
    assert drawn == of(name)
    assert "style=" not in drawn  # the page's policy forbids it
    assert not re.search(r"\bon[a-z]+=|href|url\(", drawn)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_of_a_draft_says_so(name):
    drawn = of(name, draft=True)
    assert ">DRAFT" in drawn
    assert "DRAFT: not a score" in drawn
    assert "DRAFT" not in of(name)


def test_ten_thousand_episodes_are_a_handful_of_elements():
    drawn = pictures.fates(tasks(2000), draft=False)
    assert drawn.count("<path") == len(FATES)
    assert drawn.count("M") >= 10_000
    assert len(drawn) < 400_000
    height = float(ElementTree.fromstring(drawn).attrib["viewBox"].split()[3])
    assert height < 500


def test_signs_differ_in_shape_and_not_only_in_colour():
    shapes = [re.findall(r' d="([^"]+)"', sign)[0] for sign in pictures.key().values()]
    assert len(set(shapes)) == len(FATES)


def test_what_an_agent_is_called_can_not_leave_its_text():
    drawn = pictures.forest((Mark(HOSTILE, 0.5, '"><script>x'),), draft=False)
    root = ElementTree.fromstring(drawn)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {"svg", "line", "text", "circle"}
    assert "<script" not in drawn
    assert "\u202e" not in drawn
    assert "\x1b" not in drawn
    long = pictures.fates([TaskRow("x" * 128, ("success",), 1, 1, "", ())], draft=False)
    assert "x" * 128 not in long


def test_ends_outside_an_axis_stay_on_it():
    drawn = pictures.forest((Mark("a", 0.5, "t", -3.0, 9.0, "interval"),), draft=False)
    places = [float(each) for each in re.findall(r'x[12]="([-0-9.]+)"', drawn)]
    assert all(0 <= each <= pictures.WIDTH for each in places)


def test_the_margin_of_a_tie_is_a_band():
    found = comparison.build(compared.entrants(compared.entrant(A), compared.entrant(B, "hasty")))
    banded = found.model_copy(update={"tie_margin": 0.05})
    assert 'class="band"' in pictures.differences(banded, draft=False)
    assert 'class="band"' not in pictures.differences(found, draft=False)


@pytest.mark.parametrize(("value", "up"), [(0, 1), (0.3, 0.5), (1, 1), (1.2, 2), (0.07, 0.1), (40.5, 50), (2.3, 2.5)])
def test_an_axis_ends_at_a_round_number(value, up):
    assert pictures._round_up(value) == pytest.approx(up)
