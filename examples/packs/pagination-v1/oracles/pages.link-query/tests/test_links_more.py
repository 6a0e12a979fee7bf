from pages.links import at


def test_only_the_page_differs():
    assert at("https://a.example/x?page=3&q=a%26b&empty=&q=c#top", 4) == "https://a.example/x?q=a%26b&empty=&q=c&page=4#top"
