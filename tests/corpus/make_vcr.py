"""Records vcr/library.yaml, library.json and library-httpx.yaml with VCR.py: `python make_vcr.py`.

Needs vcrpy, requests and httpx, in an environment of its own.
"""

from pathlib import Path

import httpx
import requests
import service
import vcr

HERE = Path(__file__).parent / "vcr"


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name, serializer, books in (("library.yaml", "yaml", 45), ("library-text.json", "json", 3)):
        path = HERE / name
        path.unlink(missing_ok=True)
        recorder = vcr.VCR(serializer=serializer, record_mode="all", decode_compressed_response=serializer == "json")
        with service.run() as base, recorder.use_cassette(str(path)), requests.Session() as session:
            if serializer == "yaml":
                service.work(base, session, books)
            else:  # this serializer takes no bytes that are not UTF-8
                session.headers["Authorization"] = "Bearer tok-example-6d5e4f3a2b1c0d9e"
                for number in range(1, books + 1):
                    session.get(f"{base}/books/{number}")
                session.post(f"{base}/loans", json={"book": 12, "who": "Zoë"})
                session.delete(f"{base}/books/3")
        fix_port(path, base)
    path = HERE / "library-httpx.yaml"
    path.unlink(missing_ok=True)
    with service.run() as base, vcr.use_cassette(str(path), record_mode="all"), httpx.Client() as client:
        client.get(f"{base}/books/3")
        client.get(f"{base}/events")
        client.get(f"{base}/twice")
        client.head(f"{base}/books/1")
        client.post(f"{base}/loans", json={"book": 12})
    fix_port(path, base)


def fix_port(path: Path, base: str) -> None:
    """The service as it is known in the recordings: one host, whatever the port was."""
    text = path.read_text()
    path.write_text(text.replace(base, "http://library.test").replace(base.removeprefix("http://"), "library.test"))


if __name__ == "__main__":
    main()
