"""The arguments of bubblewrap, before anything is started."""

from pathlib import Path

from scoresheet.sandbox import recipe
from scoresheet.sandbox.spec import Bind, Door, Limits, SandboxSpec

ROOT = recipe.Root(links=(("/bin", "usr/bin"),), folders=("/lib64",), etc=("/etc/ssl/certs",))


def words(spec: SandboxSpec, tree: str | None = None) -> tuple[str, ...]:
    return recipe.arguments(
        spec,
        ROOT,
        b"program",
        b"filter",
        lambda content: f"<{content!r}>",
        lambda path, _: path,
        "/usr/bin/python3",
        tree,
        "9",
    )


def binds(argv: tuple[str, ...]) -> list[tuple[str, str, str]]:
    return [
        (word, argv[place + 1], argv[place + 2])
        for place, word in enumerate(argv)
        if word.endswith("bind") and word != "--"
    ]


SPEC = SandboxSpec(doors=(), limits=Limits(wall_clock_s=1))
WITH_ALL = SandboxSpec(
    doors=(),
    limits=Limits(wall_clock_s=1),
    binds=(Bind(Path("/a/b/c"), "/a/b/c"), Bind(Path("/a/b"), "/a/b"), Bind(Path("/z"), "/tmp/z")),
    files=(("/run/scoresheet/task.json", b"task"),),
    workspace=Path("/runs/w"),
)


def test_namespaces_and_refusals_come_before_anything_is_mounted():
    argv = words(SPEC)
    first = argv.index("--ro-bind")
    for option in ("user", "net", "pid", "ipc", "uts"):
        assert argv.index(f"--unshare-{option}") < first
    for option in ("--clearenv", "--die-with-parent", "--new-session", "--as-pid-1", "--disable-userns"):
        assert argv.index(option) < first
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert argv[-6:] == ("--", "/usr/bin/python3", "-I", "-S", recipe.PROGRAM, "9")


def test_the_host_is_never_bound_as_a_whole_and_only_the_workspace_can_be_written_to():
    argv = words(WITH_ALL)
    assert {source for _, source, _ in binds(argv)}.isdisjoint({"/", "/run", "/proc", "/sys", "/dev", "/home", "/etc"})
    assert [bind for bind in binds(argv) if bind[0] == "--bind"] == [("--bind", "/runs/w", "/work")]


def test_the_workspace_is_the_last_mount_and_then_the_root_is_closed():
    argv = words(WITH_ALL)
    last = max(place for place, word in enumerate(argv) if word in ("--bind", "--ro-bind", "--tmpfs", "--ro-bind-data"))
    assert argv[last : last + 3] == ("--bind", "/runs/w", "/work")
    assert argv[last + 3 : last + 7] == ("--chdir", "/work", "--remount-ro", "/")


def test_a_tree_is_bound_before_what_lies_in_it():
    targets = [target for _, _, target in binds(words(WITH_ALL))]
    assert targets.index("/a/b") < targets.index("/a/b/c")
    argv = words(WITH_ALL)
    assert argv.index("/tmp") < argv.index("/tmp/z")


def test_every_file_system_in_memory_has_a_size():
    argv = words(SPEC)
    for place, word in enumerate(argv):
        if word == "--tmpfs":
            assert argv[place - 2] == "--size", argv[place + 1]
    assert {place for place, _ in recipe.sized(SPEC)} == set(recipe.writable(SPEC))
    assert "/work" not in {place for place, _ in recipe.sized(WITH_ALL)}


def test_what_is_declared_is_what_is_mounted():
    argv = words(WITH_ALL, "/opt/python")
    places, trees = recipe.declared(WITH_ALL, ROOT, "/opt/python")
    mounted = {argv[place + 2] for place, word in enumerate(argv) if word in ("--bind", "--ro-bind", "--ro-bind-data")}
    mounted |= {argv[place + 1] for place, word in enumerate(argv) if word in ("--tmpfs", "--proc", "--dev")}
    assert mounted | {"/"} == set(places) | set(trees)


def test_names_are_asked_of_nobody_unless_the_sandbox_has_a_door_for_them():
    own = SandboxSpec(doors=(Door("dns", 53, "udp"),), limits=Limits(wall_clock_s=1))
    assert recipe.name_service(SPEC) == "passwd: files\ngroup: files\nhosts: files\n"
    assert recipe.name_service(SandboxSpec((Door("a", 53),), Limits(wall_clock_s=1))) == recipe.name_service(SPEC)
    assert "hosts: files dns\nnameserver 127.0.0.1\n" in recipe.name_service(own)
    for spec in (SPEC, own):
        argv = words(spec)
        order, servers = (argv[argv.index(f"/etc/{name}") - 1] for name in ("nsswitch.conf", "resolv.conf"))
        assert f"{order}{servers}".replace("<b'", "").replace("'>", "") == recipe.name_service(spec).replace(
            "\n", "\\n"
        )


def test_a_file_in_place_of_the_systems_is_laid_over_it():
    over = SandboxSpec((), Limits(wall_clock_s=1), files=(("/etc/ssl/certs/ca-certificates.crt", b"ours"),))
    argv = words(over)
    assert argv.index("/etc/ssl/certs") < argv.index("/etc/ssl/certs/ca-certificates.crt")


def test_ports_that_need_a_right_are_opened_by_the_host():
    assert [Door("a", 53, "udp").privileged, Door("a", 443).privileged, Door("a", 5353, "udp").privileged] == [True] * 3
    assert not Door("a", 1024).privileged
