"""The verbs, and what `scoresheet --help` prints: nothing is imported here, so that asking for help costs nothing."""

VERBS: dict[str, str] = {
    "init": "Write a new suite, in which every blank says REPLACE_ME.",
    "record": "Record a task's calls from live services.",
    "import": "Import recordings that you already have.",
    "freeze": "Check a pack, then pin every byte of it under one digest.",
    "check": "Check packs and cards: every finding at once.",
    "scan": "Search files for credentials, private keys and customers' data.",
    "triage": "Say which tasks may run, and leave a receipt of each decision.",
    "run": "Run an agent on a frozen pack, isolated, and print the report.",
    "baseline": "Run the null and the oracle agent: is the pack itself sound?",
    "report": "Print the report of a run, or why it is not admissible.",
    "judge": "Judge blind what no program could: episodes that wait for a human.",
    "confound": "Add a dated entry to a run's confound log.",
    "export": "Write an admissible run in the format of another tool.",
    "bundle": "Put a run into one file that anybody can verify offline.",
    "verify": "Recompute a bundle or a run, and say what can't be known.",
    "compare": "Say whether agents differ, by runs that are alike in all else.",
    "replicate": "Say whether another host got what the first one got.",
    "rerun": "Run what a bundle holds again, and say whether it was replicated.",
    "view": "Serve the pages of many runs at this machine: list, filter, compare.",
    "gate": "Refuse a change that holds a score without its card, manifest, rows and receipts.",
    "serve": "Replay one task outside a run, for agent development.",
    "model-stub": "Serve a scripted model, for tests of agents without a key.",
    "explain": "Show a request's canonical form, fingerprint and nearest recordings.",
    "doctor": "Say what this machine can prove, and the command that mends the rest.",
    "schema": "Print the JSON Schema of a file format.",
}
"""Verb → its line in `--help`; the command is `command` in `scoresheet.cli.<verb>`."""

_HELP = """\
Usage: scoresheet [OPTIONS] VERB [ARGS]...

  Agent scores that travel with their protocol sheet, or are not printed.

  Example: scoresheet run examples/packs/billing-v3 --agent 'python3 agent.py' --seat laptop-a

Options:
  --version   Show the version and exit.
  --debug     Show the traceback of an error.
  -h, --help  Show this message and exit.

Verbs (`scoresheet VERB --help` says more):
"""


def help_text() -> str:
    """What `scoresheet --help` prints, without a newline at the end."""
    width = max(map(len, VERBS))
    return _HELP + "\n".join(f"  {verb:<{width}}  {line}" for verb, line in VERBS.items())
