"""The shape of the house: floors, names, docs and the cost of starting; whatever a reader may take for granted."""

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from scoresheet.cli.app import app
from scoresheet.cli.verbs import VERBS

HOUSE = Path(__file__).parent.parent
SRC = Path(sys.modules["scoresheet"].__path__[0])
MODULES = sorted(SRC.rglob("*.py"))
DOCS = sorted((HOUSE / "docs").rglob("*.md"))
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))
RULE = re.compile(r"(card|claim|import|manifest|metrics|pack|record|report|rows|run|split|task|tool|v1)(-[a-z]+)+")
HEAVY = ("numpy", "aiohttp", "jsonschema_rs", "rich", "pydantic", "uvloop", "asyncio", "yaml")


def name_of(path: Path) -> str:
    return str(path.relative_to(SRC))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def help_of(verb: str) -> str:
    # click keeps the help option of a command's first context: without these settings the page of commands would differ
    above = click.Context(app, info_name="scoresheet", **app.context_settings)
    command = app.get_command(above, verb)
    assert command is not None
    return command.get_help(click.Context(command, info_name=verb, parent=above))


def headings(page: str) -> set[str]:
    text = (HOUSE / "docs" / page).read_text(encoding="utf-8")
    return {line.lstrip("# ").strip().strip("`") for line in text.splitlines() if line.startswith("#")}


def pure_modules() -> list[Path]:
    (contract,) = [
        each for each in PROJECT["tool"]["importlinter"]["contracts"] if each["name"].startswith("pure cores")
    ]
    found: list[Path] = []
    for dotted in contract["source_modules"]:
        place = SRC.joinpath(*dotted.split(".")[1:])
        found += sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [each for each in found if each.name != "__init__.py" and "documents" not in each.parts]


def rule_ids() -> set[str]:
    """The ids of findings: text constants of src that look like one."""
    found: set[str] = set()
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and RULE.fullmatch(node.value):
                found.add(node.value)
    return found - {"pack-record", "report-field", "rows-v1", "run-plan", "task-card"}


def test_imports_point_down_only():
    from importlinter.application.use_cases import lint_imports
    from importlinter.configuration import configure

    configure()
    assert lint_imports(config_filename=str(HOUSE / "pyproject.toml"), cache_dir=None, no_logo=True)


def test_the_replay_path_holds_no_client_of_the_standard_library():
    """import-linter sees packages only, so that `http.HTTPStatus` and `http.client` are one to it."""
    for path in sorted((SRC / "replay").rglob("*.py")):
        for node in ast.walk(tree(path)):
            match node:
                case ast.Import(names=names):
                    found = {each.name for each in names}
                case ast.ImportFrom(module=str(module), names=names):
                    found = {module, *(f"{module}.{each.name}" for each in names)}
                case _:
                    continue
            assert found.isdisjoint({"http.client", "urllib.request", "socketserver", "ftplib", "smtplib"}), path


def test_the_replay_path_speaks_tls_as_a_server_alone_and_opens_no_connection():
    client = {"PROTOCOL_TLS_CLIENT", "create_default_context", "_create_unverified_context", "wrap_socket"}
    opening = {"connect", "connect_ex", "create_connection", "open_connection", "sock_connect", "start_tls"}
    for path in sorted((SRC / "replay").rglob("*.py")):
        named = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
        assert named.isdisjoint(client | opening), path
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "wrap_bio":
                assert [each.arg for each in node.keywords if ast.unparse(each.value) == "True"] == ["server_side"], (
                    path
                )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(tree(path)) or not path.read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("path", pure_modules(), ids=name_of)
def test_a_pure_module_has_its_own_test_file(path):
    place = path.relative_to(SRC)
    assert (HOUSE / "tests" / place.parent / f"test_{place.name}").is_file()


def test_files_come_to_stand_whole_by_one_module_alone():
    """`record/commit.py` decides on many files at once, and has its own way."""
    putting = {"replace", "rename", "renames", "link"}
    for path in set(MODULES) - {SRC / "atomic_file.py", SRC / "record/commit.py"}:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr not in putting, f"{name_of(path)}:{node.lineno}"


def test_tests_stand_where_the_code_stands():
    for path in (HOUSE / "tests").rglob("test_*.py"):
        place = path.relative_to(HOUSE / "tests")
        if place.parts[0] not in ("e2e", "examples", "bench", "typing") and len(place.parts) > 1:
            assert (SRC / place.parent).is_dir(), place


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_an_example_in_its_help(verb):
    text = help_of(verb)
    assert f"scoresheet {verb}" in text.split("Options:")[0].split("\n", 1)[1]


def test_the_page_of_commands_is_what_help_says():
    page = runpy.run_path(str(HOUSE / "docs" / "make_commands.py"))["page"]
    written = (HOUSE / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == page(), "run docs/make_commands.py"


def test_every_rule_is_documented_under_its_id():
    written = set().union(
        *(headings(page) for page in ("packs.md", "gates.md", "recording.md", "importing.md", "reports.md"))
    )
    assert " ".join(sorted(rule_ids() - written)) == ""


def test_every_refusal_of_isolation_is_documented_under_its_code():
    from scoresheet.sandbox.refusal import CODES, refuse

    assert " ".join(sorted(set(CODES) - headings("isolation.md"))) == ""
    page = (HOUSE / "docs" / "isolation.md").read_text(encoding="utf-8")
    for code in CODES:
        if code != "isolation-not-proved":
            section = page.split(f"### {code}\n")[1].split("\n#")[0]
            assert (refuse(code).mend or "") in section


def test_links_between_pages_lead_somewhere():
    for page in [HOUSE / "README.md", HOUSE / "examples" / "README.md", *DOCS]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} → {link}"


def test_no_file_names_a_package_host():
    for path in [*(HOUSE / "requirements").iterdir(), HOUSE / "pyproject.toml"]:
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_pays_for_nothing_heavy(arguments):
    script = "import sys\nfrom scoresheet.cli.app import run\ncode = run(sys.argv[1:])\n"
    script += "import json\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)\nsys.exit(code)"
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    loaded = {each.split(".")[0] for each in json.loads(done.stderr.splitlines()[-1])}
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))
