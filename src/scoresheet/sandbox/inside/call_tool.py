"""`scoresheet-call TOOL [ARGUMENTS]`, inside the sandbox: calls a tool by its name. Standard library only.

For agents that have nothing but a shell. ARGUMENTS are a JSON object. The result goes to stdout; when the tool says no,
its status goes to stderr and the exit is 1.
"""

import http.client
import json
import os
import re
import sys
from urllib.parse import quote


def main(tool, arguments="{}"):
    try:
        given = json.loads(arguments)
    except ValueError as error:
        sys.exit(f"scoresheet-call: the arguments are no JSON: {error}")
    if not isinstance(given, dict):
        sys.exit("scoresheet-call: the arguments are no JSON object")
    found = re.fullmatch(r"http://([^/]+)/?", os.environ.get("SCORESHEET_CALL_URL", ""))
    if found is None:
        sys.exit("scoresheet-call: $SCORESHEET_CALL_URL holds no address")
    connection = http.client.HTTPConnection(found.group(1))
    connection.request("POST", "/" + quote(tool, safe=""), arguments.encode(), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    sys.stdout.buffer.write(answer.read() + b"\n")
    if answer.status >= 400:
        sys.stdout.flush()
        sys.exit(f"status {answer.status}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: scoresheet-call TOOL [ARGUMENTS]")
    try:
        main(*sys.argv[1:])
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"scoresheet-call: the door is gone: {error!r}")
