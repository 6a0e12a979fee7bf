"""Rules that hold a card against the pack it stands beside."""

from scoresheet.gate.facts import CardFacts, Findings


def pack_tools(facts: CardFacts) -> Findings:
    """Every tool that the pack offers is on the allowlist."""
    if facts.pack is None or not isinstance(facts.get("controls.tool_allowlist"), list):
        return
    allowed = frozenset(facts.texts("controls.tool_allowlist"))
    outside = [name for name in facts.pack.tools if name not in allowed]
    if outside:
        what = f"the pack offers {', '.join(outside)}, outside controls.tool_allowlist"
        yield facts.finding("pack-tools", "controls.tool_allowlist", what, "allow them, or take them out of the tasks")


def pack_test_command(facts: CardFacts) -> Findings:
    """The card's test command is the one that the oracles run."""
    command = facts.get("controls.test_command")
    if facts.pack is None or not isinstance(command, str):
        return
    for task, own in facts.pack.test_commands.items():
        if own != command:
            what = f"controls.test_command is {command!r}, but task {task!r} runs {own!r}"
            yield facts.finding("pack-test-command", "controls.test_command", what, "make them the same text")


def pack_clock(facts: CardFacts) -> Findings:
    """The card's wall clock is the manifest's timeout."""
    clock = facts.get("controls.wall_clock_s")
    if facts.pack is not None and isinstance(clock, int | float) and clock and clock != facts.pack.timeout_s:
        what = f"controls.wall_clock_s is {clock}, but the manifest's timeout_s is {facts.pack.timeout_s}"
        mend = f"write {facts.pack.timeout_s}, or freeze again with --timeout-s {clock}"
        yield facts.finding("pack-clock", "controls.wall_clock_s", what, mend)


def pack_seed(facts: CardFacts) -> Findings:
    """The card's seed is the manifest's."""
    seed = facts.get("controls.seed")
    if facts.pack is not None and type(seed) is int and seed != facts.pack.seed:
        what = f"controls.seed is {seed}, but the manifest's seed is {facts.pack.seed}"
        yield facts.finding(
            "pack-seed", "controls.seed", what, f"write {facts.pack.seed}, or freeze again with --seed {seed}"
        )


def pack_retries(facts: CardFacts) -> Findings:
    """The card's retries are the manifest's."""
    retries = facts.get("controls.retries")
    if facts.pack is not None and type(retries) is int and retries != facts.pack.retries:
        what = f"controls.retries is {retries}, but the manifest's retries are {facts.pack.retries}"
        yield facts.finding("pack-retries", "controls.retries", what, f"write {facts.pack.retries}")
