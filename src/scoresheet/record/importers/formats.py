"""The formats that can be imported; each is one module, loaded when it is asked for. Pure."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from scoresheet.record.importers.intake import Intake, Source


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recordings."""

    name: str
    line: str
    module: str
    suffixes: tuple[str, ...]
    """Of the files that are taken from a folder."""
    beside: str = ""
    """Folder beside the files that holds bodies which they name."""

    def take(self, sources: Sequence[Source], intake: Intake) -> None:
        """Take in the files, in their order. Raises `Malformed` for a file that is of another format, `Usage`."""
        module = importlib.import_module(f"scoresheet.record.importers.{self.module}")
        if hasattr(module, "read_all"):
            module.read_all(sources, intake)
            return
        for source in sources:
            module.read(source, intake)


FORMATS = {
    each.name: each
    for each in (
        Format("har", "HAR 1.2, of browsers, proxies and Polly.JS", "har", (".har",)),
        Format("vcr", "VCR.py cassettes, YAML and JSON (pytest-recording)", "vcr", (".yaml", ".yml", ".json")),
        Format("mcp", "logs of MCP's JSON-RPC messages", "mcp", (".jsonl", ".ndjson", ".log", ".json")),
        Format("openai", "tool calls of OpenAI transcripts, JSON or JSON lines", "openai", (".json", ".jsonl")),
        Format("atif", "tool calls of ATIF trajectories", "atif", (".json",)),
        Format("mitmproxy", "flow files of mitmproxy", "flows", (".flows", ".mitm", ".flow", ".dump")),
        Format(
            "wiremock", "WireMock mappings that name one request, and their __files", "wiremock", (".json",), "__files"
        ),
        Format("openapi", "examples in OpenAPI 3 descriptions", "openapi", (".yaml", ".yml", ".json")),
        Format("betamax", "Betamax and Ruby VCR cassettes", "betamax", (".json", ".yaml", ".yml")),
        Format("hoverfly", "Hoverfly simulations of exact requests", "hoverfly", (".json",)),
        Format("nock", "nock's recordings of Node programs, as JSON", "nock", (".json",)),
        Format("postman", "responses saved in Postman collections", "postman", (".json",)),
    )
}
