"""What a run may spend on models, counted as it is spent: by every episode, from any thread.

A call that is under way ends; the next one is not sent, and its episode is interrupted without a row.
"""

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scoresheet.documents.prices import PriceTable
from scoresheet.documents.row import ModelUsage
from scoresheet.documents.run_plan import RunBudget
from scoresheet.model.entry import MODEL_LOG, read_back
from scoresheet.model.observed import Exchange
from scoresheet.model.wire.parts import Asked, Usage
from scoresheet.model.wire.reading import Read
from scoresheet.run.plan import Episode
from scoresheet.stats import bill

INTERRUPTED = "interrupted"
"""Why an episode was stopped that is run again."""
LOST = "interrupted"
"""Folder of a run with the model calls of attempts that were cut short, and run again."""
_FREE = ("/count_tokens",)


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be spent, each `None` where nobody said it."""

    tokens: int | None = None
    """In and out, of all calls together."""
    cost: int | None = None
    """In `bill.UNIT`."""

    @property
    def any(self) -> bool:
        """True when there is one."""
        return self.tokens is not None or self.cost is not None


class Budget:
    """The spending of one run."""

    def __init__(self, limit: Limit = Limit(), prices: PriceTable | None = None) -> None:
        self.limit, self._prices = limit, prices
        self._lock = threading.Lock()
        self._tokens, self._cost = 0, 0
        self._unpriced = False
        self._over: str | None = None

    @property
    def over(self) -> str | None:
        """Why nothing more may be spent; `None` while something may."""
        with self._lock:
            return self._over

    def begin(self, tokens: int, cost: int | None) -> None:
        """Go on from what a run had spent before."""
        with self._lock:
            self._tokens, self._cost = tokens, cost or 0
            self._unpriced = self._prices is not None and cost is None
            self._over = self._reached()

    def refusal(self, path: str, asked: Asked | None) -> str | None:
        """Why a call must not be sent, which is why the run stops; `None` when it may."""
        if not self.limit.any or path.partition("?")[0].endswith(_FREE):
            return None
        with self._lock:
            self._over = self._over or self._unkept(path, asked)
            return self._over

    def take(self, exchange: Exchange) -> None:
        """Count a call that has ended."""
        answered = exchange.found.answered if isinstance(exchange.found, Read) else None
        if answered is None or exchange.refused is not None:
            return
        with self._lock:
            if answered.usage is not None:
                asked = exchange.found.asked.model if isinstance(exchange.found, Read) else None
                self._spend(answered.model or asked or "no model", answered.usage)
                self._over = self._over or self._reached()
            elif self.limit.any and answered.failure is None and answered.complete:
                self._over = self._over or "the budget can't be kept: an answer told no tokens"

    def told(self) -> RunBudget:
        """How the run's plan tells it."""
        with self._lock:
            priced = self._prices is not None
            return RunBudget(
                max_tokens_total=self.limit.tokens,
                max_cost=None if self.limit.cost is None else bill.text(self.limit.cost),
                currency=self._prices.currency if self._prices is not None else None,
                spent_tokens=self._tokens,
                spent_cost=bill.text(self._cost) if priced and not self._unpriced else None,
                stopped=self._over,
            )

    def _spend(self, model: str, usage: Usage) -> None:
        self._tokens += usage.input + usage.output
        if self._prices is None:
            return
        used = ModelUsage(
            model=model,
            calls=1,
            input=usage.input,
            cached=usage.cached,
            cache_write=usage.cache_write,
            output=usage.output,
            reasoning=usage.reasoning,
        )
        found = bill.bill((used,), self._prices)
        self._cost += found.amount
        if found.unpriced:
            self._unpriced = True
            if self.limit.cost is not None:
                self._over = self._over or f"max_cost can't be kept: the price table does not name {model}"

    def _reached(self) -> str | None:
        limit = self.limit
        if limit.tokens is not None and self._tokens >= limit.tokens:
            return f"max_tokens_total {limit.tokens} is spent: {self._tokens} tokens"
        if limit.cost is not None and self._cost >= limit.cost:
            assert self._prices is not None
            currency = self._prices.currency
            return f"max_cost {bill.text(limit.cost)} {currency} is spent: {bill.text(self._cost)} {currency}"
        return None

    def _unkept(self, path: str, asked: Asked | None) -> str | None:
        """Why what a call would cost can't be known."""
        if asked is None:
            return f"the budget can't be kept: nothing is known of what {path.partition('?')[0]} costs"
        if self.limit.cost is None or self._prices is None or asked.model is None:
            return None
        if bill.price_of(self._prices, asked.model) is None:
            return f"max_cost can't be kept: the price table does not name {asked.model}"
        return None


def keep_lost(run: Path, again: Iterable[Episode]) -> None:
    """Put the logs of attempts without a row, which are run again, where the new ones can't replace them.

    Nothing reads them but `on_disk`: whoever is killed again must still know what was spent before.
    """
    for episode in again:
        path = run / episode.folder / MODEL_LOG
        if path.exists():
            folder = run / LOST / Path(episode.folder).relative_to("episodes")
            folder.mkdir(parents=True, exist_ok=True)
            number = next(each for each in itertools.count() if not (folder / f"{each}-{MODEL_LOG}").exists())
            path.rename(folder / f"{number}-{MODEL_LOG}")


def on_disk(run: Path, prices: PriceTable | None) -> tuple[int, int | None]:
    """Tokens and cost of every call that a run directory holds, of episodes without a row too."""
    budget = Budget(prices=prices)
    for path in sorted((*run.glob(f"episodes/*/*/{MODEL_LOG}"), *run.glob(f"{LOST}/*/*/*-{MODEL_LOG}"))):
        data = path.read_bytes()
        for entry in read_back(data[: data.rfind(b"\n") + 1]):  # a killed runner leaves a torn last line
            exchange = entry.exchange()
            if exchange is not None:
                budget.take(exchange)
    told = budget.told()
    return told.spent_tokens, None if told.spent_cost is None else bill.parsed(told.spent_cost)
