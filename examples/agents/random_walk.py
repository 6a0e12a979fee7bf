"""An agent that is careful six times in ten; else it guesses an answer, gives up, or calls what was not recorded.

scoresheet run PACK --agent 'python3 examples/agents/random_walk.py' --seat laptop-a

All its chance comes from the episode's seed: the same seed gives the same run.
"""

import json
import os
import random
import sys

sys.dont_write_bytecode = True  # the agent's folder is part of its identity

from careful import over_http, solve  # noqa: E402

if __name__ == "__main__":
    task = json.load(sys.stdin)
    chance = random.Random(int(os.environ["SCORESHEET_SEED"])).random()
    if chance < 0.6:
        print(json.dumps(solve(task, over_http)))
    elif chance < 0.8:
        print(json.dumps({"refunded": True, "amount": 1, "count": 1, "value": 1}))
    elif chance < 0.9:
        sys.exit("it gave up")
    else:
        over_http("GET", f"/nowhere/{chance}", None)
