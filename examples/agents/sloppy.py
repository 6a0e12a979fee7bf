"""An agent that gets its refunds right and its arguments wrong: it sends amounts as text.

scoresheet run examples/packs/billing-v3 --agent 'python3 examples/agents/sloppy.py' --seat laptop-a

The refund service was lenient and the recordings hold its answer, so the agent succeeds; the tool's schema wants an
integer, so `schema_ok` is 0 in every episode that sends a refund.
"""

import json
import sys
from typing import Any

sys.dont_write_bytecode = True  # the agent's folder is part of its identity

from careful import over_http, solve  # noqa: E402


def as_text(method: str, path: str, body: Any) -> tuple[int, str]:
    """One call, with the amount as text."""
    if isinstance(body, dict) and "amount" in body:
        body = {**body, "amount": str(body["amount"])}
    return over_http(method, path, body)


if __name__ == "__main__":
    print(json.dumps(solve(json.load(sys.stdin), as_text)))
