import pytest

from scoresheet.errors import Usage
from scoresheet.record.upstream import Upstream


@pytest.mark.parametrize(
    "text",
    [
        "http://x",
        "1A=http://x",
        "A=ftp://x",
        "A=http://",
        "A=http://x:y",
        "A=http://x/?q=1",
        "A=http://u:p@x",
        "A-B=http://x",
    ],
)
def test_an_address_that_cannot_be_one_is_refused(text):
    with pytest.raises(Usage):
        Upstream.parse(text)


def test_an_address_says_host_port_and_base():
    upstream = Upstream.parse("API=https://api.example.com/v2/")
    assert (upstream.tls, upstream.port, upstream.base, upstream.authority) == (True, 443, "/v2", "api.example.com")
    assert upstream.place == "api.example.com/v2"
    assert Upstream.parse("API=http://[::1]:80").authority == "[::1]"
    assert Upstream.parse("API=http://[::1]:81").authority == "[::1]:81"
