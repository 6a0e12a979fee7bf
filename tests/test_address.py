import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import address
from scoresheet.address import Address
from scoresheet.errors import Usage


@pytest.mark.parametrize(
    ("url", "found", "authority"),
    [
        ("http://api.example", Address(False, "api.example", 80, ""), "api.example"),
        ("https://API.example/", Address(True, "api.example", 443, ""), "api.example"),
        ("https://api.example:443/v1/", Address(True, "api.example", 443, "/v1"), "api.example"),
        ("https://api.example:80/v1", Address(True, "api.example", 80, "/v1"), "api.example:80"),
        ("http://[::1]:8080/a/b", Address(False, "::1", 8080, "/a/b"), "[::1]:8080"),
        ("https://[2001:db8::1]", Address(True, "2001:db8::1", 443, ""), "[2001:db8::1]"),
    ],
)
def test_an_address_is_read_and_named_as_in_a_host_header(url, found, authority):
    assert address.parse(url, "--model", "", "") == found
    assert found.authority == authority


@pytest.mark.parametrize(
    ("url", "what", "mend"),
    [
        ("api.example", "is not http", "write it"),
        ("ftp://api.example", "is not http", "write it"),
        ("http:///v1", "is not http", "write it"),
        ("http://api.example?key=1", "is not http", "write it"),
        ("http://api.example#top", "is not http", "write it"),
        ("http://api.example:99999", "can't be read: Port out of range", "write it"),
        ("http://[::1", "can't be read: Invalid IPv6", "write it"),
        ("http://me@api.example", "holds a credential", "leave it out"),
        ("https://:secret@api.example", "holds a credential", "leave it out"),
    ],
)
def test_what_is_no_address_is_refused_with_its_mend(url, what, mend):
    with pytest.raises(Usage, match=what) as caught:
        address.parse(url, "--model openai", "write it", "leave it out")
    assert (caught.value.where, caught.value.mend) == ("--model openai", mend)
    assert "secret" not in str(caught.value)


@given(st.text())
def test_any_text_is_an_address_or_refused(text):
    for url in (text, f"http://{text}"):
        try:
            found = address.parse(url, "", "", "")
        except Usage:
            continue
        assert found.host
        assert 0 < found.port < 65536
