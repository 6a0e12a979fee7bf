"""The recorded exchanges of tests/corpus/model-wire, as the decoders get them, and their golden readings."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from scoresheet.model.wire import reading

TESTS = Path(__file__).parents[2]
FOLDER = TESTS / "corpus" / "model-wire"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def recorded(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def of(dialect: str) -> list[str]:
    return [name for name in NAMES if recorded(name)["dialect"] == dialect]


def answer(exchange: dict[str, Any]) -> bytes:
    response = exchange["response"]
    return response["sse"].encode() if "sse" in response else json.dumps(response["body"]).encode()


def read(name: str) -> reading.Read:
    exchange = recorded(name)
    request, response = exchange["request"], exchange["response"]
    # bodies are kept decoded, their headers as they came
    headers = [(key, value) for key, value in response["headers"] if key.lower() != "content-encoding"]
    body = json.dumps(request["body"]).encode()
    found = reading.read(request["path"], body, response["status"], headers, answer(exchange))
    assert isinstance(found, reading.Read)
    return found


def golden(dialect: str) -> dict[str, Any]:
    return json.loads((TESTS / "golden" / "model-wire" / f"{dialect}.json").read_bytes())


def as_json(found: reading.Read) -> Any:
    return json.loads(json.dumps(dataclasses.asdict(found)))


def write() -> None:
    """Writes the golden files anew: read the difference before it is committed."""
    for dialect in ("openai_chat", "openai_responses", "anthropic_messages"):
        readings = {name: as_json(read(name)) for name in of(dialect)}
        path = TESTS / "golden" / "model-wire" / f"{dialect}.json"
        path.write_text(json.dumps(readings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
