"""Records mitmproxy/library.har and library.flows with mitmdump: `python make_mitmproxy.py`.

Needs mitmproxy and requests, in an environment of its own; mitmdump is the one beside this interpreter.
"""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import requests
import service

HERE = Path(__file__).parent / "mitmproxy"
PORT = 18732


def record(books: int, *options: str) -> str:
    mitmdump = Path(sys.executable).with_name("mitmdump")
    process = subprocess.Popen(
        [str(mitmdump), "-q", "--listen-port", str(PORT), "--set", "keep_host_header=true", *options]
    )
    try:
        with service.run() as base, requests.Session() as session:
            session.trust_env = False
            session.proxies = {"http": f"http://127.0.0.1:{PORT}"}
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1):
                    break
                time.sleep(0.1)
            service.work(base, session, books)
            return base
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name in ("library.har", "library.flows"):
        (HERE / name).unlink(missing_ok=True)
    base = record(190, "--set", f"hardump={HERE / 'library.har'}")
    text = (HERE / "library.har").read_text().replace(base.removeprefix("http://"), "library.test")
    document = json.loads(text)  # without the blanks that indent it: half the size
    (HERE / "library.har").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
    record(6, "-w", str(HERE / "library.flows"))


if __name__ == "__main__":
    main()
