"""The oracle agent, inside the sandbox: makes every recorded call, then gives the right answer. Standard library only.

It proves that a pack can be solved: what it needs lies in a file that no other agent gets.
"""

import base64
import json
import os
import socket
import subprocess
import sys

_SKIPPED = {"host", "content-length", "transfer-encoding", "connection", "expect"}


def main(solution_path):
    with open(solution_path, encoding="utf-8") as file:
        solution = json.load(file)
    for request in solution["requests"]:
        send(request)
    if "work" in solution:
        work(solution["work"]["name"], base64.b64decode(solution["work"]["content"]))
    if solution["answer"] is not None:
        with open(os.environ["SCORESHEET_ANSWER"], "w", encoding="utf-8") as file:
            json.dump(solution["answer"], file)


def work(name, content):
    """Puts the reference solution into the workspace, which is the current folder."""
    place = os.path.join(os.environ["HOME"], name)
    with open(place, "wb") as file:
        file.write(content)
    if name == "solve.sh":
        subprocess.run(["/bin/sh", place], check=True)
        return
    for words in (["git", "apply", "--whitespace=nowarn", place], ["patch", "-p1", "-s", "-f", "-i", place]):
        try:
            subprocess.run(words, check=True)
            return
        except FileNotFoundError:
            continue
    raise SystemExit("the reference patch can't be applied: neither git nor patch is here")


def send(request):
    url = os.environ[request["url"]]
    host, _, port = url.removeprefix("http://").strip("/").partition(":")
    body = base64.b64decode(request["body"])
    lines = [f"{request['method']} {request['target']} HTTP/1.1", f"Host: {host}:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in request["headers"] if name.lower() not in _SKIPPED]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines).encode("utf-8", "surrogateescape")
    try:
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + b"\r\n\r\n" + body)
            while connection.recv(65536):
                pass
    except OSError:
        pass  # a recorded failure is replayed as one


if __name__ == "__main__":
    main(sys.argv[1])
