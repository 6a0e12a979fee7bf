"""What a Python module defines, read from its source: nothing of it is run.

Pure. Only what is certain is said: a module that may make names while it runs is left to run.
"""

import ast
import difflib
import warnings
from dataclasses import dataclass

_MAKES_NAMES = frozenset(
    {"__dict__", "__getattr__", "delattr", "eval", "exec", "globals", "locals", "modules", "setattr", "vars"}
)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Lack:
    """Why no function can be had from a module."""

    what: str
    line: int | None
    mend: str


def lack(source: bytes, name: str) -> Lack | None:
    """Why the module has no `name` at its top level; `None` when it has one, or when that can't be known."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its style, which is the agent's own matter
            tree = ast.parse(source)
            compile(
                source, "<agent>", "exec", dont_inherit=True
            )  # it finds more, such as a return outside of functions
    except SyntaxError as error:
        return Lack(
            f"this is no Python: {error.msg}",
            error.lineno,
            "correct that line: as it is, every episode would end there",
        )
    except ValueError:  # what older versions say of a null byte
        return Lack("this is no Python: it holds a null byte", None, "name the agent's source: py:FILE:FUNCTION")
    except (RecursionError, MemoryError):
        return None
    found = _names(tree)
    if found is None or name in found:
        return None
    functions = sorted(each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    near = difflib.get_close_matches(name, functions, n=1)
    some = ", ".join(functions[:_SHOWN]) + (", …" if len(functions) > _SHOWN else "")
    told = f"it defines {some}" if functions else "it defines none at its top level: def solve(task, call): …"
    return Lack(f"no function {name!r} is defined here", None, f"did you mean {near[0]}? {told}" if near else told)


def _names(tree: ast.Module) -> frozenset[str] | None:
    """The names that the module's own code binds; `None` when there may be others."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) if name in _MAKES_NAMES:
                return None
            case ast.ImportFrom(names=names) if any(each.name == "*" for each in names):
                return None
            case ast.Global(names=names):  # what a function binds in its module's stead
                found |= set(names)
            case _:
                pass
    inner: list[ast.AST] = list(tree.body)
    while inner:
        node = inner.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
                continue  # what is bound inside is not the module's
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {each.asname or each.name.partition(".")[0] for each in names}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
            case _:
                pass
        inner += ast.iter_child_nodes(node)
    return frozenset(found)
