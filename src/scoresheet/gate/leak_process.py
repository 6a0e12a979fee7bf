"""A process of the leak scan: batches of paths come in on stdin, one line each, and their content goes out."""

import json
import sys
from pathlib import Path

from scoresheet.gate.leak_file import as_value, search_file


def main(root: str) -> None:
    """Search until stdin ends."""
    for line in sys.stdin:
        found = [as_value(search_file(Path(root), path)) for path in json.loads(line)]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
