from pages.links import header


def test_the_first_page_has_no_page_before_it():
    assert header("https://a.example/x", 1, 2) == (
        '<https://a.example/x?page=2>; rel="next", <https://a.example/x?page=2>; rel="last"'
    )


def test_the_search_stays():
    assert "q=red+shoes" in header("https://a.example/x?q=red+shoes&page=1", 1, 2)
