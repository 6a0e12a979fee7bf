"""Hosts and their names."""

import pytest

from scoresheet.errors import Usage
from scoresheet.record.importers.hosts import Host, Hosts


def test_hosts_are_named_after_themselves():
    hosts = Hosts()
    assert hosts.place("api.github.com", "/a") == ("API_GITHUB_COM", "/a")
    assert hosts.place("127.0.0.1:80", "/") == ("HOST_127_0_0_1_80", "/")
    assert hosts.place("api-github.com", "/") == ("API_GITHUB_COM_2", "/")
    assert hosts.place("api.github.com", "/b") == ("API_GITHUB_COM", "/b")
    assert hosts.place("[::1]", "/") == ("HOST_1", "/")
    assert hosts.used({"HOST_1"}) == {"HOST_1": "[::1]"}


def test_named_hosts_are_the_only_ones_and_a_base_is_taken_off():
    hosts = Hosts((Host.parse("API=https://Api.Test/v1"), Host.parse("OLD=api.test"), Host.parse("X=x.test:8080")))
    assert hosts.place("api.test", "/v1/a") == ("API", "/a")
    assert hosts.place("api.test", "/v1") == ("API", "/")
    assert hosts.place("api.test", "/v11") == ("OLD", "/v11")
    assert hosts.place("x.test:8080", "/a") == ("X", "/a")
    assert hosts.place("x.test", "/a") is None


def test_one_host_is_needed_where_files_name_none():
    assert Hosts((Host("A", "a.test"),)).only().authority == "a.test"
    with pytest.raises(Usage):
        Hosts().only()


@pytest.mark.parametrize("text", ["A", "A=", "1=a", "A=a b", "A=a/b", "A=ftp://a", "A=https://u:p@a", "A=a:b", "=a"])
def test_what_names_no_host_is_refused(text):
    with pytest.raises(Usage):
        Host.parse(text)
