"""An agent under the agent contract: does what its arguments say, one request each, and answers what it was told."""

import http.client
import json
import os
import sys
import urllib.parse

task = json.load(sys.stdin)
with open(os.environ["SCORESHEET_TASK"], encoding="utf-8") as view:
    assert json.load(view) == task
address = urllib.parse.urlsplit(os.environ["SHOP"])
statuses = []
digests = []
for spec in sys.argv[1:]:
    request = json.loads(spec)
    if "exit" in request:
        sys.exit(request["exit"])
    if "write" in request:
        with open(os.environ["SCORESHEET_ANSWER"], "w", encoding="utf-8") as file:
            file.write(request["write"])
        continue
    if "call" in request:
        door = urllib.parse.urlsplit(os.environ["SCORESHEET_CALL_URL"])
        request |= {"method": "POST", "target": "/" + request["call"], "body": request.get("arguments", {})}
    else:
        door = address
    connection = http.client.HTTPConnection(door.netloc, timeout=300)
    body = request.get("body")
    headers = request.get("headers", {})
    if isinstance(body, dict):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    try:
        connection.request(request.get("method", "GET"), request["target"], body, headers)
        answer = connection.getresponse()
        data = answer.read()
        statuses.append([answer.status, sorted(name for name, _ in answer.getheaders())])
        digests.append(data.decode("latin-1"))
    except (OSError, http.client.HTTPException) as error:
        statuses.append([type(error).__name__, []])
        digests.append("")
    connection.close()
print("talk before the answer")
print(json.dumps({"calls": len(statuses), "statuses": [status for status, _ in statuses]}))
print()
if out := os.environ.get("SEEN"):
    with open(out, "w", encoding="utf-8") as file:
        json.dump([digests, [status for status, _ in statuses], os.environ["SCORESHEET_SEED"]], file)
