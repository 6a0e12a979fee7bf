import pytest

from scoresheet.errors import ScoresheetError, Usage
from scoresheet.model.upstream import ModelUpstream, refuse_recorded


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("openai=https://api.openai.com/v1", "/v1/chat/completions"),
        ("openai=https://api.deepseek.com", "/chat/completions"),
        ("openai=https://openrouter.ai/api/v1/", "/api/v1/chat/completions"),
        ("openai=http://[::1]:8000/v1", "/v1/chat/completions"),
    ],
)
def test_the_agents_path_is_put_behind_the_endpoints(text, target):
    assert ModelUpstream.parse(text).target("POST", "/v1/chat/completions") == target


@pytest.mark.parametrize("text", ["anthropic=https://api.anthropic.com", "anthropic=https://api.anthropic.com/v1"])
def test_anthropics_address_may_end_in_its_version(text):
    assert ModelUpstream.parse(text).target("POST", "/v1/messages?beta=true") == "/v1/messages?beta=true"


@pytest.mark.parametrize(
    "text",
    [
        "https://api.openai.com/v1",
        "gemini=https://a.example",
        "openai=ftp://a.example",
        "openai=https://",
        "openai=https://user:pass@a.example",
        "openai=https://a.example?x=1",
        "openai=https://a.example/../b",
        "openai=https://a.example:99999",
        "openai=https://a.example/a b",
    ],
)
def test_what_is_no_endpoint_is_refused(text):
    with pytest.raises(Usage):
        ModelUpstream.parse(text)


def test_host_and_port_are_told_as_reports_name_them():
    found = ModelUpstream.parse("openai=https://API.example.com/v1")
    assert (found.place, found.authority) == ("api.example.com:443", "api.example.com")
    assert ModelUpstream.parse("openai=http://127.0.0.1:8099/v1").authority == "127.0.0.1:8099"


@pytest.mark.parametrize(
    "place", ["https://api.example.com", "api.example.com", "API.example.com:443", "https://api.example.com./v2"]
)
def test_a_recorded_service_can_be_no_model(place):
    with pytest.raises(ScoresheetError, match="recorded service BILLING"):
        refuse_recorded(ModelUpstream.parse("openai=https://api.example.com/v1"), {"BILLING": place})


@pytest.mark.parametrize(
    "place", ["https://other.example.com", "api.example.com:8443", "", "api.example.com.evil.example"]
)
def test_another_service_is_none_of_its_business(place):
    refuse_recorded(ModelUpstream.parse("openai=https://api.example.com/v1"), {"BILLING": place})
