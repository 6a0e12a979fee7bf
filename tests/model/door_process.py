"""A door to the endpoint on the port of the first argument, as a process of its own; it ends with standard input.

Its port is the first line out; at its end it says what it counted. Its log lies in the folder of the second argument.
"""

import json
import socket
import sys
from pathlib import Path

from scoresheet.model.door import ModelDoor
from scoresheet.model.log import MODEL_LOG, ModelLog
from scoresheet.model.observed import Pinned
from scoresheet.model.upstream import ModelUpstream
from scoresheet.run.model_calls import Reading

PINNED = Pinned(0.0, (7,), "m", frozenset({"lookup"}), 40)


def screen(asked):
    return "outside the card's allowlist" if PINNED.outside(asked) else None


def main(port, folder):
    door = ModelDoor(ModelUpstream.parse(f"openai=http://127.0.0.1:{port}/v1"), "sk-real-0123456789")
    path = Path(folder, MODEL_LOG)
    log = ModelLog(path)
    heard = []
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        with door.episode(listening, log, screen, lambda exchange: heard.append(None)):
            print(listening.getsockname()[1], flush=True)
            sys.stdin.readline()
    log.close()
    door.close()
    with path.open("rb") as file:
        reading = Reading(file, PINNED)
        for _ in reading.exchanges():
            pass
        seen = reading.seen().observation
    print(json.dumps({"heard": len(heard), "calls": seen.calls, "tokens_in": seen.tokens_in}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
