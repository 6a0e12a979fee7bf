"""The agent that is given calls and answer, by a file that only it gets: a sound pack gives it 1.

It is an ordinary sandboxed command all the same: it must make the calls and answer through the doors.
"""

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from scoresheet.canonical import JsonValue
from scoresheet.documents.task import Task
from scoresheet.documents.tool import CALL
from scoresheet.run.agents.agent import PROGRAMS, Agent, Files
from scoresheet.run.agents.python import builtin

if TYPE_CHECKING:
    from scoresheet.run.workspace import Work

SOLUTION = f"{PROGRAMS}/solution.json"


def oracle() -> Agent:
    """The oracle agent."""
    agent = builtin("oracle", "oracle_agent.py")

    def private(task: Task, work: "Work | None" = None) -> Files:
        return ((SOLUTION, json.dumps(solution(task, work)).encode()),)

    return replace(agent, argv=(*agent.argv, SOLUTION), private=private)


def solution(task: Task, work: "Work | None" = None) -> dict[str, JsonValue]:
    """What the oracle agent does: requests in their recorded order, the reference solution, and the answer.

    v1 recordings hold no readable request, so there only the answer is given. A recorded timeout is not waited for,
    unless what follows was recorded in the state that it led to.
    """
    requests: list[dict[str, JsonValue]] = []
    for call in task.calls:
        moves = call.state is not None and call.state.sets is not None
        if call.request is None or (call.fault == "timeout" and not moves):
            continue
        request = call.request.as_request()
        headers = list(request.headers)
        if request.body and not request.header("content-type") and "body" in call.request.model_fields_set:
            headers.append(("Content-Type", "application/json"))
        by_name = request.method == CALL
        requests.append(
            {
                "url": "SCORESHEET_CALL_URL" if by_name else request.upstream or "SCORESHEET_TOOLS_URL",
                "method": "POST" if by_name else request.method,
                "target": f"/{request.target}" if by_name else request.target,
                "headers": [list(pair) for pair in headers],
                "body": base64.b64encode(request.body).decode(),
            }
        )
    made: dict[str, JsonValue] = {"requests": requests, "answer": dict(task.expected) or None}
    content = None if work is None else work.solution_bytes()
    if work is not None and work.solution is not None and content is not None:
        made["work"] = {"name": work.solution, "content": base64.b64encode(content).decode()}
    return made
