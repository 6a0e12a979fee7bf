"""Tokens and a price table → what it costs, to the last digit. Pure: whole numbers, no rounding.

What can't be priced is said, and is never zero.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from scoresheet.documents.prices import MICRO, ModelPrice, PriceTable
from scoresheet.documents.row import ModelUsage

UNIT = 10**12
"""What 1 of the currency is: a millionth of a price for one of a million tokens."""
_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{3})")


@dataclass(frozen=True, slots=True)
class Bill:
    """What some tokens cost."""

    amount: int
    """In 1/`UNIT` of the currency, of what could be priced."""
    unpriced: tuple[str, ...] = ()
    """Models that the table does not name."""

    @property
    def whole(self) -> int | None:
        """The amount, when all of it is known."""
        return None if self.unpriced else self.amount


def price_of(table: PriceTable, model: str) -> ModelPrice | None:
    """The price of a model by its name, else by its name without the date; `None` when there is none."""
    found = table.models.get(model)
    if found is not None:
        return found
    undated = (name for name in table.models if name and model.startswith(name) and _DATED.fullmatch(model, len(name)))
    named = max(undated, key=len, default=None)
    return None if named is None else table.models[named]


def bill(usages: Iterable[ModelUsage], table: PriceTable) -> Bill:
    """What these tokens cost by the table."""
    amount, unpriced = 0, dict[str, None]()
    for usage in usages:
        price = price_of(table, usage.model)
        if price is None:
            unpriced.setdefault(usage.model)
        else:
            amount += _amount(usage, price)
    return Bill(amount, tuple(unpriced))


def text(amount: int) -> str:
    """An amount as decimal text, exact: every digit that is not a closing zero."""
    whole, rest = divmod(amount, UNIT)
    return f"{whole}.{rest:012d}".rstrip("0").rstrip(".")


def parsed(value: str) -> int:
    """The amount in decimal text of at most 12 places. Raises `ValueError`."""
    if not re.fullmatch(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?", value):
        raise ValueError("an amount is a decimal number, such as 12.50")
    whole, _, rest = value.partition(".")
    return int(whole) * UNIT + int(rest.ljust(12, "0"))


def _amount(usage: ModelUsage, price: ModelPrice) -> int:
    fresh = max(usage.input - usage.cached - usage.cache_write, 0)
    spoken = max(usage.output - usage.reasoning, 0)
    kinds = (
        (fresh, price.input),
        (usage.cached, price.input if price.cached_input is None else price.cached_input),
        (usage.cache_write, price.input if price.cache_write is None else price.cache_write),
        (spoken, price.output),
        (usage.reasoning, price.output if price.reasoning is None else price.reasoning),
    )
    return sum(tokens * _micro(each) for tokens, each in kinds)


def _micro(price: Decimal) -> int:
    return int(price.scaleb(6).to_integral_exact())


assert MICRO * MICRO == UNIT
