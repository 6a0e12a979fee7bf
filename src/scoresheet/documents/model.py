"""What every file format has in common: frozen, strict, read through `canonical`, every fault named with its place."""

import json
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scoresheet import canonical, json_pointer
from scoresheet.errors import Finding, Refused

T = TypeVar("T")


Many = Annotated[tuple[T, ...], Field(strict=False)]
"""A JSON array, held as a tuple: frozen does not freeze lists."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Fingerprint = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
TaskId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
StateName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""Of a scenario, or of one of its states."""
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Headers = Many[Annotated[tuple[str, str], Field(strict=False)]]
"""`[name, value]` pairs in the order they were sent: duplicates and case are kept."""


class Document(BaseModel):
    """A file format that users write or that other tools extend: unknown members are kept and ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        validate_by_name=True,
        validate_by_alias=True,
    )
    rule: ClassVar[str] = "document"
    """Rule id of a finding in this format."""
    most_digits: ClassVar[int | None] = canonical.MOST_DIGITS
    """Of an integer; `None` where a document holds what others said, which is kept as it was."""

    @classmethod
    def from_bytes(cls, data: bytes | str, where: str) -> Self:
        """The document in strict JSON text. Raises `Refused` with a finding for every fault."""
        try:
            value = canonical.loads(data, cls.most_digits)
        except canonical.JsonError as error:
            error.with_place(where)
            finding = Finding(f"{cls.rule}-json", error.where, error.what, error.mend)
            raise Refused(error.what, [finding], error.where) from error
        return cls.from_value(value, where)

    @classmethod
    def from_value(cls, value: canonical.JsonValue, where: str) -> Self:
        """The document in a value that `canonical.loads` or `yaml12.load` gave. Raises `Refused`."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            findings = [
                Finding(
                    f"{cls.rule}-field",
                    f"{where}#{json_pointer.of(fault['loc'])}",
                    _reason(fault["type"], fault["msg"]),
                )
                for fault in error.errors(include_url=False, include_input=False, include_context=False)
            ]
            raise Refused(f"not a valid {cls.rule}", findings, where) from error

    @classmethod
    def model_json_schema(cls, *given: Any, **named: Any) -> dict[str, Any]:
        """The JSON Schema, with what stands under the fields."""
        from scoresheet.documents.described import Described

        return super().model_json_schema(*given, **{"schema_generator": Described} | named)

    def as_json(self) -> dict[str, Any]:
        """What is written to disk: members that were given (or differ from their default), by their file names."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class ToolDocument(Document):
    """A file format that only scoresheet writes: an unknown member is a fault."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def indented(document: ToolDocument) -> str:
    """A document as JSON for people and tools: members in their order, with a final newline."""
    value = document.model_dump(mode="json", by_alias=True)
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def without_nulls(value: Any) -> Any:
    """A mapping without its null members: in a card, `excluded:` with nothing behind it is the same as no line."""
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


def _reason(kind: str, message: str) -> str:
    """What is wrong with a member, in our words where the usual ones speak of Python."""
    match kind:
        case "missing":
            return "this member is missing"
        case "extra_forbidden":
            return "this member is not known"
        case "model_type" | "model_attributes_type" | "dataclass_type" | "dict_type":
            return "a JSON object is wanted"
        case "value_error":
            return message.removeprefix("Value error, ")
        case _:
            return message[:1].lower() + message[1:]
