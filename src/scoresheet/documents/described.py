"""What stands under the fields of a format, for its JSON Schema: read from the source when a schema is asked for.

pydantic would read it whenever a format is imported, which costs every command more than most of them do.
"""

import ast
import inspect
import textwrap
from functools import lru_cache
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue


class Described(GenerateJsonSchema):
    """A JSON Schema whose properties say what the docstrings under their fields say."""

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """Schema of one model."""
        found = super().model_schema(schema)
        model = schema["cls"]
        properties = found.get("properties", {})
        for name, field in model.model_fields.items():
            text = next((texts[name] for texts in map(_texts, model.__mro__) if name in texts), None)
            shown = properties.get(field.serialization_alias or name)
            if text is not None and shown is not None:
                shown["description"] = text
        return found


@lru_cache(maxsize=256)
def _texts(model: type) -> dict[str, str]:
    """Field → the docstring under it, of a class that has a source here."""
    if not model.__module__.startswith("scoresheet."):
        return {}
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(parsed, ast.ClassDef)
    return dict(_pairs(parsed.body))


def _pairs(body: list[ast.stmt]) -> list[tuple[str, str]]:
    found = []
    for above, below in pairwise(body):
        match above, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found.append((name, inspect.cleandoc(text)))
    return found
