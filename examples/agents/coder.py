"""A coding agent that knows a few mistakes, and mends those that it finds in its workspace.

    scoresheet run examples/packs/pagination-v1 --agent 'python3 examples/agents/coder.py' --seat laptop-a

Where another agent has a model, this one has rules: it solves what they fit, and leaves the rest as it is. It adds a
test of its own, as one should.
"""

import pathlib
import re

RULES = (
    ("a slice that ends one too early", r"\[(\w+) : \1 \+ (\w+) - 1\]", r"[\1 : \1 + \2]"),
    ("a division that should round up", r"return (\w+) // (\w+) \+ 1$", r"return -(-\1 // \2)"),
    ("base 64 without its padding", r"urlsafe_b64decode\((\w+)\)", r'urlsafe_b64decode(\1 + "=" * (-len(\1) % 4))'),
    ("a sort that turns equal items round", r"sorted\((\w+), (key=.*)\)\[::-1\]", r"sorted(\1, \2, reverse=True)"),
    ("a default that every call shares", r"(\w+)=\{\}\):", r"\1=None):"),
    ("a limit that belongs to the next band", r"if cents <= limit:", r"if cents < limit:"),
    ("a stop at the first empty page", r"        if not entries:\n            return\n", ""),
)
SHARED = re.compile(r"^def (\w+)\((.*)(\w+)=None\):\n(    \"\"\".*\"\"\"\n)    (\w+) = \3$", re.MULTILINE)


def main():
    for path in sorted(pathlib.Path().rglob("*.py")):
        if path.parts[0] == "tests":
            continue
        before = text = path.read_text()
        for name, pattern, right in RULES:
            text, count = re.subn(pattern, right, text, flags=re.MULTILINE)
            if count:
                print(f"{path}: {name}")
        text = SHARED.sub(r"def \1(\2\3=None):\n\4    \5 = {} if \3 is None else \3", text)
        if text != before:
            path.write_text(text)
    pathlib.Path("tests/test_imports.py").write_text(
        "import pathlib\n\n\ndef test_every_file_can_be_read():\n"
        "    for path in pathlib.Path().rglob('*.py'):\n        compile(path.read_text(), str(path), 'exec')\n"
    )


if __name__ == "__main__":
    main()
