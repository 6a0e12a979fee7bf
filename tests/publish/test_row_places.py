import pytest

from scoresheet.publish.outcome import Grid
from scoresheet.publish.row_places import RowPlaces, folder_of
from tests.publish.runs import plan, row

PLANNED = Grid(plan(tasks=2, repeats=2))


def test_every_attempt_is_found_by_its_folder_and_of_two_the_first_counts():
    places = RowPlaces(PLANNED)
    rows = [row("t01", 1), row("t00"), row("t00", attempt=1), row("t00"), row("unplanned"), row("t00", attempt=1)]
    for number, each in enumerate(rows, 1):
        places.add(each, number, 100 * number, number)
    assert [places.find(folder_of(each)) for each in rows] == [0, 1, 2, 1, 3, 2]
    assert ([*places.numbers], [*places.offsets], [*places.sizes]) == ([1, 2, 3, 5], [100, 200, 300, 500], [1, 2, 3, 5])
    assert (len(places), places.seen) == (4, bytearray(4))


@pytest.mark.parametrize(
    "folder",
    ["episodes/t00/00.0", "episodes/t00/0.00", "episodes/t00/+0.0", "episodes/t00/٠.0", "t00/0.0", "episodes/t00/1.0"],
)
def test_a_folder_that_no_row_names_is_not_found(folder: str):
    places = RowPlaces(PLANNED)
    places.add(row("t00"), 1, 0, 10)
    assert places.find("episodes/t00/0.0") == 0
    assert places.find(folder) is None
