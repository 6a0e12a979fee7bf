import pytest
from pages.offset import page_count


@pytest.mark.parametrize(("total", "pages"), [(0, 0), (1, 1), (3, 1), (4, 1), (5, 2), (400, 100)])
def test_count(total, pages):
    assert page_count(total, 4) == pages
