"""Writes the pack `billing-v3`: the same bytes every time.

    python3 examples/packs/make_billing.py            # into examples/packs/billing-v3
    python3 examples/packs/make_billing.py DIR

The refund service behind it is invented; each task below is one conversation with it. To change a task, change it
here and run this again, then `scoresheet freeze`. Every request that a task allows is listed; a request that is not
listed was never recorded, however reasonable it looks.
"""

import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scoresheet import canonical

TODAY = "2026-09-22"

PROMPT = f"""
Today is {TODAY}. Amounts are whole cents. The billing API, whose address is in SCORESHEET_TOOLS_URL:
  GET /v1/orders/ORDER               one order: payments, refund_until, duplicate_of
  GET /v1/customers/CUSTOMER/orders  the orders of a customer
  GET /v1/payments/PAYMENT           one payment: captured, amount, refunded
  POST /v1/refunds                   JSON body {{"payment_id": PAYMENT, "amount": CENTS}}
Every error of the API has a `code`.

Read the order, then each of its payments in the order listed, then send the refund. A full refund returns what is left
(amount minus refunded) of every payment, one refund each; a smaller one is taken from the first payment that has
something left, then from the next. Of two orders read both, and refund the one whose duplicate_of names the other.
Look at nothing else, and never send a refund again.

Answer {{"refunded": true, "amount": CENTS}} with the sum of all refunds, or {{"refunded": false, "reason": CODE}}.
CODE is, in this order: the `code` of the API's error; window_closed when today is after refund_until; not_captured when
a payment is not captured; already_refunded when nothing is left; amount_exceeds_remaining when less is left than asked.
Send no refund in any of the last four.
"""

ORDER = {"type": "string", "pattern": "^ord-[0-9]+$", "description": "Order number, such as ord-1001."}
CUSTOMER = {"type": "string", "pattern": "^cus-[0-9]+$", "description": "Customer number, such as cus-88."}
PAYMENT = {"type": "string", "pattern": "^pay-[0-9]+$", "description": "Payment number, such as pay-501."}
CENTS = {"type": "integer", "minimum": 1, "description": "Amount in cents."}


def tool(name: str, description: str, method: str, path: str, **arguments: object) -> dict[str, Any]:
    """The document of one tool: its schema, and how it is called over HTTP."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": arguments,
            "required": list(arguments),
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": method == "GET"},
        "http": {"upstream": "", "method": method, "path": path},
    }


TOOLS = (
    tool("get_order", "One order.", "GET", "/v1/orders/{order_id}", order_id=ORDER),
    tool("list_orders", "A customer's orders.", "GET", "/v1/customers/{customer_id}/orders", customer_id=CUSTOMER),
    tool("get_payment", "One payment.", "GET", "/v1/payments/{payment_id}", payment_id=PAYMENT),
    tool("create_refund", "Refund a payment.", "POST", "/v1/refunds", payment_id=PAYMENT, amount=CENTS),
)


@dataclass
class Task:
    """One conversation: what is asked, what the service answered, what a right answer holds."""

    number: int
    ask: str
    expected: dict[str, Any]
    calls: list[dict[str, Any]] = field(default_factory=list)

    @property
    def task_id(self) -> str:
        return f"billing.refund.v{self.number}"

    def call(self, method: str, path: str, body: object, status: int, answer: object) -> None:
        """Record one call. `{}` is the body of a request without bytes (docs/formats, Fingerprints, v1)."""
        request = canonical.v1_text({"method": method, "path": path, "body": body})
        self.calls.append(
            {
                "request_fingerprint": "sha256:" + hashlib.sha256(request).hexdigest(),
                "response_status": status,
                "response_bytes": json.dumps(answer),
                "latency_ms_recorded": 40.0 + 7 * len(self.calls) if status < 500 else 2900.0,
            }
        )

    def order(
        self, number: int, payments: list[int], *, until: str = "2026-10-05", duplicate_of: int | None = None
    ) -> "Task":
        answer = {
            "order_id": f"ord-{number}",
            "payments": [f"pay-{payment}" for payment in payments],
            "refund_until": until,
            "duplicate_of": None if duplicate_of is None else f"ord-{duplicate_of}",
        }
        self.call("GET", f"/v1/orders/ord-{number}", {}, 200, answer)
        return self

    def no_order(self, number: int) -> "Task":
        self.call("GET", f"/v1/orders/ord-{number}", {}, 404, error("order_not_found"))
        return self

    def orders_of(self, customer: int, *orders: tuple[str, int]) -> "Task":
        answer = [{"placed": placed, "order_id": f"ord-{number}"} for placed, number in orders]
        self.call("GET", f"/v1/customers/cus-{customer}/orders", {}, 200, {"orders": answer})
        return self

    def payment(self, number: int, amount: int, *, captured: bool = True, refunded: int = 0) -> "Task":
        answer = {"payment_id": f"pay-{number}", "captured": captured, "amount": amount, "refunded": refunded}
        self.call("GET", f"/v1/payments/pay-{number}", {}, 200, answer)
        return self

    def refund(self, payment: int, amount: int, fails: tuple[int, str] | None = None) -> "Task":
        """A refund; the service is lenient and takes the amount as text too, which the tool's schema forbids."""
        for sent in (amount, str(amount)):
            body = {"payment_id": f"pay-{payment}", "amount": sent}
            if fails:
                self.call("POST", "/v1/refunds", body, fails[0], error(fails[1]))
            else:
                answer = {"refund_id": f"ref-{payment}", "payment_id": f"pay-{payment}", "amount": amount}
                self.call("POST", "/v1/refunds", body, 201, answer)
        return self


def error(code: str) -> dict[str, Any]:
    """The body of every error that the service gives."""
    return {"error": {"code": code}}


def refunded(amount: int) -> dict[str, Any]:
    return {"refunded": True, "amount": amount}


def refused(reason: str) -> dict[str, Any]:
    return {"refunded": False, "reason": reason}


TASKS = (
    # A plain refund.
    Task(1, "Refund order ord-1001 in full.", refunded(1200)).order(1001, [501]).payment(501, 1200).refund(501, 1200),
    # A part of the price.
    Task(2, "Refund 450 cents of order ord-1002.", refunded(450))
    .order(1002, [502])
    .payment(502, 1800)
    .refund(502, 450),
    # The window closed the day before. The payment could still be refunded, but that call was never recorded.
    Task(3, "Refund order ord-1003 in full.", refused("window_closed"))
    .order(1003, [503], until="2026-09-21")
    .payment(503, 3000),
    # Authorized, never captured: there is nothing to give back.
    Task(4, "Refund order ord-1004 in full.", refused("not_captured"))
    .order(1004, [504])
    .payment(504, 2500, captured=False),
    # The refund itself fails: the merchant's balance is too low.
    Task(5, "Refund order ord-1005 in full.", refused("insufficient_balance"))
    .order(1005, [505])
    .payment(505, 99900)
    .refund(505, 99900, fails=(402, "insufficient_balance")),
    # The service breaks down; whoever sends the refund again may pay twice.
    Task(6, "Refund order ord-1006 in full.", refused("internal"))
    .order(1006, [506])
    .payment(506, 700)
    .refund(506, 700, fails=(500, "internal")),
    # Charged twice: only the refund of the duplicate was recorded.
    Task(7, "Orders ord-1007 and ord-1008 are one purchase. Refund the duplicate in full.", refunded(1999))
    .order(1007, [507])
    .order(1008, [508], duplicate_of=1007)
    .payment(508, 1999)
    .refund(508, 1999),
    # Somebody was faster.
    Task(8, "Refund order ord-1009 in full.", refused("already_refunded"))
    .order(1009, [509])
    .payment(509, 1500, refunded=1500),
    # More than is left of it.
    Task(9, "Refund 2000 cents of order ord-1010.", refused("amount_exceeds_remaining"))
    .order(1010, [510])
    .payment(510, 5000, refunded=4000),
    # A number that nobody has.
    Task(10, "Refund order ord-9999 in full.", refused("order_not_found")).no_order(9999),
    # The latest order is not the last of the list. Tempting and not recorded: the list of all orders.
    Task(11, "Refund the latest order of customer cus-88 in full.", refunded(640))
    .orders_of(88, ("2026-08-30", 1011), ("2026-09-18", 1013), ("2026-09-02", 1012))
    .order(1013, [513])
    .payment(513, 640)
    .refund(513, 640),
    # Paid with two cards, one of them refunded in part: two refunds, of what is left.
    Task(12, "Refund order ord-1014 in full.", refunded(3500))
    .order(1014, [514, 515])
    .payment(514, 2000, refunded=500)
    .payment(515, 2000)
    .refund(514, 1500)
    .refund(515, 2000),
)


def text(document: object) -> bytes:
    """A document as it lies in the pack: indented, and in the order written here."""
    return json.dumps(document, indent=2).encode() + b"\n"


def write(pack: Path) -> None:
    """Write every task and tool into `pack`; the manifest is for `scoresheet freeze` to write."""
    (pack / "tools").mkdir(parents=True, exist_ok=True)
    references = []
    for document in TOOLS:
        data = text(document)
        (pack / "tools" / f"{document['name']}.json").write_bytes(data)
        references.append(
            {"name": document["name"], "schema_sha256": "sha256:" + hashlib.sha256(data).hexdigest()},
        )
    for task in TASKS:
        body = {
            "task_id": task.task_id,
            "prompt": task.ask + "\n" + PROMPT,
            "tools": references,
            "calls": task.calls,
            "expected": task.expected,
        }
        (pack / f"{task.task_id}.json").write_bytes(text(body))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "billing-v3")
