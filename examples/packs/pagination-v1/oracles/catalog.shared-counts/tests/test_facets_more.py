from catalog import facets


def test_a_given_dict_is_added_to_even_when_it_is_empty():
    counts = {}
    facets([{"a": 1}], "a", counts)
    facets([{"a": 1}, {"a": 2}], "a", into=counts)
    assert counts == {1: 2, 2: 1}


def test_results_are_not_shared():
    first = facets([{"a": 1}], "a")
    facets([{"a": 1}], "a")
    assert first == {1: 1}
