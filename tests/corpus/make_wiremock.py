"""Records wiremock-recorded/ with WireMock: `python make_wiremock.py wiremock-standalone.jar`.

Needs java, requests, and WireMock 3 (`npm install wiremock@3.13.2` brings its jar).
"""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import requests
import service

HERE = Path(__file__).parent / "wiremock-recorded"


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["java", "-jar", sys.argv[1], "--port", str(port), "--root-dir", str(HERE), "--disable-banner"]
    with service.run() as base, subprocess.Popen(words, stdout=subprocess.DEVNULL) as running:
        admin = f"http://127.0.0.1:{port}/__admin"
        while True:
            try:
                requests.get(f"{admin}/health", timeout=5)
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        asked = {"targetBaseUrl": base, "repeatsAsScenarios": True, "captureHeaders": {"Content-Type": {}}}
        requests.post(f"{admin}/recordings/start", json=asked, timeout=30).raise_for_status()
        with requests.Session() as session:
            service.work(f"http://127.0.0.1:{port}", session, 6)
        requests.post(f"{admin}/recordings/stop", timeout=30).raise_for_status()
        running.terminate()


if __name__ == "__main__":
    main()
