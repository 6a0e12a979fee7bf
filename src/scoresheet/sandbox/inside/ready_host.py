"""Runs a ready-made agent inside the sandbox: `ready_host.py AGENT OPTIONS PROGRAM…`. Standard library only.

AGENT is the agent's own file (scoresheet/run/agents), which knows how it is started and what it said last; OPTIONS is
a JSON object; PROGRAM… are the words that start its program. What the program prints is passed on as it comes. When
what it said last ends in a JSON object, that is the answer.
"""

import importlib.util
import json
import os
import re
import select
import subprocess
import sys

MOST = 4 << 20
"""Bytes of its output that are passed on: an agent that says all it does is not ended by the limit of output."""
KEPT = 1 << 20
"""Bytes of the beginning and of the end of its output that are looked at."""


class Given:
    """What an agent is started with: the task, what the card pins, and where its own files may go."""

    def __init__(self, program, options):
        with open(os.environ["SCORESHEET_TASK"], encoding="utf-8") as file:
            self.task = json.load(file)
        self.program: list[str] = program
        self.options: dict[str, str] = options
        self.environment: dict[str, str] = dict(os.environ)
        self.home: str = os.environ["HOME"]
        self.tools: list[str] = [tool["name"] for tool in self.task["tools"]]
        self.prompt: str = prompt_of(self.task)
        self.model: str = options.get("model") or os.environ.get("SCORESHEET_MODEL", "")
        temperature = os.environ.get("SCORESHEET_TEMPERATURE")
        self.temperature = None if temperature is None else float(temperature)
        self.seed = int(os.environ["SCORESHEET_SEED"])
        allowed = os.environ.get("SCORESHEET_TOOL_ALLOWLIST")
        self.allowed = None if allowed is None else json.loads(allowed)

    def own(self, tools: "tuple[str, ...]", usual: "tuple[str, ...]") -> "list[str]":
        """Those of an agent's own tools that the card names; without a card the usual ones."""
        return [tool for tool in tools if tool in (usual if self.allowed is None else self.allowed)]

    def put(self, name: str, text: str) -> str:
        """Write a file below the home; its path."""
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def prompt_of(task):
    """What the agent is asked: the task's prompt, and how to answer where an answer is wanted."""
    if task.get("answer_schema") is not None:
        wanted = f"JSON object, which fits this schema: {json.dumps(task['answer_schema'])}"
    elif task["tools"]:
        wanted = "JSON object"
    else:
        return task["prompt"]
    return f"{task['prompt'].rstrip()}\n\nEnd your last message with the answer on a line of its own: one {wanted}"


def answer_in(text):
    """The JSON object that a message ends in, as its text, in a fence or not; `None` when it ends in none."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"^[ \t]*(?=\{)", text, re.MULTILINE):
        try:
            _, end = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            continue
        if text[end:].strip() in ("", "```"):
            return text[found.end() : end]
    return None


def load(path):
    spec = importlib.util.spec_from_file_location("agent", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(words, environment):
    """(exit status, beginning and end of what it printed), which is passed on as it comes, up to MOST bytes.

    What it left running in the background may hold its output open: that is not waited for.
    """
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    out, ended = process.stdout.fileno(), os.pidfd_open(process.pid)
    first, last, passed, left = b"", b"", 0, 0
    over = False
    while True:
        ready, _, _ = select.select([out] if over else [out, ended], [], [], 0 if over else None)
        if out in ready:
            data = os.read(out, 1 << 16)
            if not data:
                break
            first, rest = first + data[: KEPT - len(first)], data[KEPT - len(first) :]
            last = (last + rest)[-KEPT:]
            if passed < MOST:
                passed += len(data)
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                left += len(data)
        elif over:
            break
        over = over or ended in ready
    if left:
        print(f"\nscoresheet: {left} more bytes were printed", flush=True)
    return process.wait(), first + last


def main(path, options, *program):
    agent = load(path)
    given = Given(list(program), json.loads(options))
    words, environment = agent.start(given)
    status, printed = run(words, environment)
    text, fault = agent.final(given, printed) if status == 0 else (None, None)
    answer = None if text is None else answer_in(text)
    place = os.environ["SCORESHEET_ANSWER"]
    if answer is not None and not os.path.exists(place):
        with open(place, "w", encoding="utf-8") as file:
            file.write(answer)
    # the last line of all, and no JSON: no line of the program's own is taken for the answer
    print(f"\nscoresheet: the agent ended with {status}" + (f": {fault}" if fault else ""), flush=True)
    return (128 - status if status < 0 else status) or (1 if fault else 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
