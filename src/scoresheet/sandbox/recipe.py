"""The exact arguments of bubblewrap, and what must then be seen inside. Pure: from values to a tuple of strings.

Never bound: `/`, `/run`, `/proc`, `/sys`, homes as a whole. The workspace is the last mount and a leaf: no mount
point is ever made beneath a directory that an agent has written to, for older versions of bubblewrap follow a symbolic
link there onto the host (CVE-2026-87766).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from scoresheet.errors import Usage
from scoresheet.sandbox.spec import ANSWER, HOME, MIB, WORK, SandboxSpec, executable

PROGRAM = "/run/scoresheet/init.pyc"
ANSWER_FOLDER = str(PurePosixPath(ANSWER).parent)
SHARED_MEMORY_BYTES = 64 * MIB
_ANSWER_SLACK = 64 * 1024

_ETC = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/localtime",
    "/etc/mime.types",
)
_ETC_TEXTS = (
    ("/etc/passwd", b"agent:x:1000:1000:agent:/home/agent:/bin/sh\n"),
    ("/etc/group", b"agent:x:1000:\n"),
    ("/etc/hosts", b"127.0.0.1 localhost sandbox\n::1 localhost\n"),
)
_NO_NAMES = (
    ("/etc/resolv.conf", b""),
    ("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files\n"),
)
_OWN_NAMES = (
    ("/etc/resolv.conf", b"nameserver 127.0.0.1\noptions timeout:2 attempts:2\n"),
    ("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n"),
)

_NEVER_WHOLE = ("/", "/proc", "/sys", "/dev", "/run", "/var", "/var/run", "/home", "/root", "/etc", "/tmp", "/boot")
_NEVER_INSIDE = ("/proc", "/sys", "/dev", "/run/answer", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64")


@dataclass(frozen=True, slots=True)
class Root:
    """How the host's top directories are laid out: symbolic links into /usr, or directories of their own."""

    links: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    etc: tuple[str, ...] = _ETC
    """Those of the public files in /etc that exist."""


def etc_candidates() -> tuple[str, ...]:
    """Public files of /etc that are bound when they exist."""
    return _ETC


def check(spec: SandboxSpec) -> None:
    """Nothing when the binds can be made safely. Raises `Usage`."""
    for bind in spec.binds:
        target = PurePosixPath(bind.target)
        if not target.is_absolute() or ".." in target.parts:
            raise Usage("a bind's target must be an absolute path", where=bind.target)
        if str(bind.source) in _NEVER_WHOLE or str(target) in _NEVER_WHOLE:
            raise Usage(
                "this directory is never bound into a sandbox as a whole",
                where=str(bind.source),
                mend="put the agent into a directory of its own and bind that",
            )
        if _beneath(str(target), _NEVER_INSIDE) and not _beneath(str(target), ("/usr/local", "/usr/share")):
            raise Usage("nothing can be bound there: the sandbox has its own", where=bind.target)
        if spec.workspace is not None and _beneath(str(target), (WORK,)):
            raise Usage(
                "nothing can be bound beneath the workspace, which agents write to",
                where=bind.target,
                mend=f"move it out of {WORK}: bind it at another place",
            )


def sized(spec: SandboxSpec) -> tuple[tuple[str, int], ...]:
    """Place and size in bytes of each file system in memory that the agent may write to."""
    limits = spec.limits
    sizes = [
        ("/dev/shm", SHARED_MEMORY_BYTES),
        ("/tmp", limits.work_bytes),
        (HOME, limits.work_bytes),
        (ANSWER_FOLDER, limits.answer_bytes + _ANSWER_SLACK),
    ]
    if spec.workspace is None:
        sizes.append((WORK, limits.work_bytes))
    return tuple(sizes)


def name_service(spec: SandboxSpec) -> str:
    """nsswitch.conf and resolv.conf together, as they must be read inside.

    Even where the sandbox has a responder of its own, no name resolves while the probe runs: the host opens the
    responder's door afterwards, so that no answer can come from anywhere else.
    """
    (_, servers), (_, order) = _names(spec)
    return (order + servers).decode()


def _names(spec: SandboxSpec) -> tuple[tuple[str, bytes], ...]:
    return _OWN_NAMES if any(door.kind == "udp" and door.port == 53 for door in spec.doors) else _NO_NAMES


def writable(spec: SandboxSpec) -> tuple[str, ...]:
    """Every mount that may be written to inside: no more, no fewer."""
    places = {place for place, _ in sized(spec)}
    if spec.workspace_writable:
        places.add(WORK)
    return tuple(sorted(places))


def declared(spec: SandboxSpec, root: Root, interpreter: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Mounts that must be the only ones: (single places, trees that bring their own submounts along)."""
    places = {"/", "/proc", "/dev", WORK, PROGRAM, *writable(spec)}
    places |= {path for path, _ in (*_ETC_TEXTS, *_NO_NAMES, *spec.files, *spec.programs)}
    trees = {"/usr", *root.folders, *root.etc, *(bind.target for bind in spec.binds)}
    if interpreter is not None:
        trees.add(interpreter)
    return tuple(sorted(places)), tuple(sorted(trees))


def arguments(
    spec: SandboxSpec,
    root: Root,
    program: bytes,
    seccomp: bytes,
    descriptor: Callable[[bytes], str],
    place: Callable[[str, bool], str],
    interpreter: str,
    interpreter_tree: str | None,
    control: str,
) -> tuple[str, ...]:
    """Arguments of bwrap, without its name.

    `descriptor` gives the descriptor that holds some bytes; `place` gives where a host path can be bound from (path,
    writable); `control` is the control socket's descriptor.
    """
    made = [
        *("--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--new-session", "--clearenv"),
        *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--disable-userns"),
        *("--ro-bind", "/usr", "/usr"),
    ]
    for link, target in root.links:
        made += ["--symlink", target, link]
    made += ["--perms", "0755", "--dir", "/etc"]
    for path in (*root.folders, *root.etc):
        made += ["--ro-bind", path, path]
    for path, content in (*_ETC_TEXTS, *_names(spec)):
        made += ["--perms", "0444", "--ro-bind-data", descriptor(content), path]
    made += ["--proc", "/proc", "--dev", "/dev"]
    for path, size in sized(spec):
        made += ["--perms", "1777" if path in ("/dev/shm", "/tmp") else "0755"]
        made += ["--size", str(size), "--tmpfs", path]
    made += ["--remount-ro", "/dev"]
    made += ["--perms", "0444", "--ro-bind-data", descriptor(program), PROGRAM]
    for path, content in spec.files:
        made += ["--perms", "0444", "--ro-bind-data", descriptor(content), path]
    for path, source in spec.programs:
        made += ["--perms", "0555", "--ro-bind-data", descriptor(executable(source, interpreter)), path]
    if interpreter_tree is not None:
        made += ["--ro-bind", place(interpreter_tree, False), interpreter_tree]
    for bind in sorted(spec.binds, key=lambda bind: PurePosixPath(bind.target).parts):
        made += ["--ro-bind", place(str(bind.source), False), bind.target]
    if spec.workspace is not None:
        made += [
            "--bind" if spec.workspace_writable else "--ro-bind",
            place(str(spec.workspace), spec.workspace_writable),
            WORK,
        ]
    made += ["--chdir", WORK, "--remount-ro", "/", "--seccomp", descriptor(seccomp)]
    return (*made, "--", interpreter, "-I", "-S", PROGRAM, control)


def _beneath(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
