"""The programs that run inside, compiled by the very interpreter that will run them: once a run."""

import functools
import importlib.resources
import json
import subprocess
from dataclasses import dataclass

from scoresheet.errors import NotIsolated

_COMPILER = """
import importlib.util, json, marshal, sys
sources = json.load(sys.stdin)
code = {name: compile(text, "<scoresheet " + name + ">", "exec") for name, text in sources.items()}
head = importlib.util.MAGIC_NUMBER + bytes(12)
join = '''
import marshal, sys
probe = type(sys)("probe")
sys.modules["probe"] = probe
exec(marshal.loads(%r), probe.__dict__)
exec(marshal.loads(%r))
''' % (marshal.dumps(code["probe"]), marshal.dumps(code["init"]))
for program in (head + marshal.dumps(compile(join, "<scoresheet>", "exec")), head + marshal.dumps(code["probe"])):
    sys.stdout.buffer.write(len(program).to_bytes(8, "big") + program)
"""


@dataclass(frozen=True, slots=True)
class Programs:
    """Compiled programs, each the bytes of a .pyc file."""

    init: bytes
    control: bytes


def compile_for(interpreter: str) -> Programs:
    """The programs as that interpreter reads them. Raises `NotIsolated` when it can't start."""
    ran = subprocess.run([interpreter, "-I", "-S", "-c", _COMPILER], input=_sources(), capture_output=True, check=False)
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise NotIsolated(
            "python-missing", "the interpreter failed", where=f"{interpreter}: {said[-1] if said else ''}"
        )
    first = int.from_bytes(ran.stdout[:8], "big") + 8
    return Programs(init=ran.stdout[8:first], control=ran.stdout[first + 8 :])


@functools.cache
def _sources() -> bytes:
    folder = importlib.resources.files("scoresheet.sandbox.inside")
    return json.dumps(
        {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in ("init", "probe")}
    ).encode()
