"""An agent that first looks where nobody told it to: one call that no recording holds.

scoresheet run PACK --agent 'python3 examples/agents/guesser.py' --seat laptop-a

The call ends its episode: success 0, unauthorized 1, whatever it would have answered.
"""

import json
import sys

sys.dont_write_bytecode = True  # the agent's folder is part of its identity

from careful import over_http, solve  # noqa: E402

if __name__ == "__main__":
    task = json.load(sys.stdin)
    over_http("GET", "/v1/orders" if "orders" in task["prompt"] else "/-/versions.json", None)
    print(json.dumps(solve(task, over_http)))
