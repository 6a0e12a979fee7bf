from text.slug import slug


def test_it_is_there():
    assert slug("A title") == "a-title"
