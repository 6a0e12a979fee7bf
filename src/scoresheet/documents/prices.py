"""A price table, which the user gives: model → what a million of its tokens costs, by kind. Exact; none is built in."""

import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from scoresheet.documents.model import ToolDocument

MICRO = 1_000_000
"""A price is a whole number of millionths of the currency."""
_TEXT = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?")
_KEPT = 15
"""Digits that a number without quotes keeps for certain."""


def exact(value: Any) -> Decimal:
    """The price, as it was written. Raises `ValueError` for what is none, or would not be exact."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a price is a number, such as 0.25")
    if isinstance(value, float):
        if len(repr(value).replace(".", "").lstrip("0")) > _KEPT:
            raise ValueError(f"more than {_KEPT} digits, which are not kept exactly")
        value = f"{Decimal(repr(value)):f}"
    text = str(value)
    if text.endswith(".0"):
        text = text.removesuffix(".0")
    if not _TEXT.fullmatch(text):
        raise ValueError("a price is 0 or more, under a thousand million, and has at most 6 decimal places")
    return Decimal(text)


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError as error:
        raise ValueError(f"{value} is no day") from error


Price = Annotated[
    Decimal,
    PlainValidator(exact),
    PlainSerializer(lambda value: f"{value:f}", return_type=str),
    WithJsonSchema({"type": ["number", "string"], "minimum": 0, "pattern": f"^{_TEXT.pattern}$"}),
]


class ModelPrice(ToolDocument):
    """What a million tokens cost, in the table's currency."""

    rule = "prices"
    input: Price
    """Read by the model, and not from a cache."""
    output: Price
    cached_input: Price | None = None
    """Read from a cache; without it, as `input`."""
    cache_write: Price | None = None
    """Written to a cache; without it, as `input`."""
    reasoning: Price | None = None
    """Reasoning that is counted as output; without it, as `output`."""


class PriceTable(ToolDocument):
    """The file of `--prices`."""

    rule = "prices"
    format: Literal["scoresheet-prices/1"] = "scoresheet-prices/1"
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    """ISO 4217, such as `USD`."""
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_day)]
    """Of which day the prices are."""
    source: str | None = None
    """Where they were read."""
    models: Annotated[dict[str, ModelPrice], Field(min_length=1)]
    """Name as the model answers or as it was asked for; a dated snapshot has the price of the name without the date."""
