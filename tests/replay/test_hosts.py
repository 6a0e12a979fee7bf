"""Which recordings a public address means."""

import pytest

from scoresheet.replay.hosts import Hosts, Routed, split

HOSTS = Hosts.of(
    {
        "API": "api.example.com",
        "ADMIN": "api.example.com/admin",
        "ALT": "alt.example.com:8443",
        "PLAIN": "plain.example.com:80",
        "LOCAL": "localhost:8080",
        "NUMBER": "10.1.2.3",
        "BARE": "intranet",
    }
)


def test_only_public_hosts_have_names():
    assert HOSTS.names == {"api.example.com", "alt.example.com", "plain.example.com"}
    assert HOSTS.ports == (8443,)
    assert not HOSTS.knows("localhost:8080")
    assert not HOSTS.knows("10.1.2.3")


@pytest.mark.parametrize(
    ("authority", "secure"),
    [
        ("api.example.com", True),
        ("api.example.com", False),
        ("API.Example.COM.", True),
        ("api.example.com:443", True),
        ("api.example.com:80", False),
    ],
)
def test_a_host_answers_on_the_usual_ports_of_both_schemes(authority, secure):
    assert HOSTS.find(authority, secure, "/x?q=1") == (Routed("API", "/x?q=1"),)


@pytest.mark.parametrize(
    ("authority", "secure"),
    [
        ("api.example.com:8443", True),
        ("alt.example.com", True),
        ("plain.example.com", True),
        ("example.com", True),
        ("evil-api.example.com", True),
        ("", True),
        (":443", True),
    ],
)
def test_another_host_or_port_means_nothing(authority, secure):
    assert HOSTS.find(authority, secure, "/x") == ()


def test_a_port_that_was_recorded_is_part_of_the_address():
    assert HOSTS.find("alt.example.com:8443", True, "/x") == (Routed("ALT", "/x"),)
    assert HOSTS.find("plain.example.com", False, "/x") == (Routed("PLAIN", "/x"),)


def test_the_path_before_the_recorded_ones_is_taken_off_and_the_longest_comes_first():
    assert HOSTS.find("api.example.com", True, "/admin/x") == (Routed("ADMIN", "/x"), Routed("API", "/admin/x"))
    assert HOSTS.find("api.example.com", True, "/admin?q=1")[0] == Routed("ADMIN", "/?q=1")
    assert HOSTS.find("api.example.com", True, "/admin")[0] == Routed("ADMIN", "/")
    assert HOSTS.find("api.example.com", True, "/administrators") == (Routed("API", "/administrators"),)


def test_an_authority_is_split_as_clients_write_it():
    assert split("Host:1") == ("host", 1)
    assert split("[::1]:8080") == ("::1", 8080)
    assert split("[::1]") == ("::1", None)
    assert split("host:99999999") == ("host:99999999", None)
