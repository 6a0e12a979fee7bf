"""An agent that reads what it is asked, calls only the API that it was told of, and answers from what it was told.

    scoresheet run PACK --agent 'python3 examples/agents/careful.py' --seat laptop-a
    scoresheet run PACK --agent py:examples/agents/careful.py:solve --seat laptop-a

It is a program of rules where another agent has a model: it knows how the refund pack and the catalog pack word their
questions, and no task, number or answer of either. Standard library only.
"""

import http.client
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

Call = Callable[[str, str, Any], tuple[int, str]]
"""(method, path and query, JSON body or None) → (status, response text)"""


class Failed(Exception):
    """The API said no."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status)
        self.status, self.text = status, text


def solve(task: dict[str, Any], call: Call) -> dict[str, Any]:
    """The answer to one task."""
    question = task["prompt"].splitlines()[0]
    if question.startswith(("Refund", "Orders")):
        return refund(question, task["prompt"], call)
    return look_up(question, call)


# Refunds ------------------------------------------------------------------------------------------------------------


def refund(question: str, prompt: str, call: Call) -> dict[str, Any]:
    """Refund what the question names, unless a rule of the prompt forbids it."""
    today = found(r"Today is (\S+)\.", prompt)
    try:
        order = find_order(question, call)
        payments = []
        if today <= order["refund_until"]:
            payments = [ask(call, f"/v1/payments/{payment}") for payment in order["payments"]]
        left = sum(payment["amount"] - payment["refunded"] for payment in payments)
        wanted = int(found(r"Refund (\d+) cents", question) or left)
        if today > order["refund_until"]:
            return {"refunded": False, "reason": "window_closed"}
        if not all(payment["captured"] for payment in payments):
            return {"refunded": False, "reason": "not_captured"}
        if left == 0:
            return {"refunded": False, "reason": "already_refunded"}
        if wanted > left:
            return {"refunded": False, "reason": "amount_exceeds_remaining"}
        for payment, amount in shares(payments, wanted):
            body = {"payment_id": payment["payment_id"], "amount": amount}
            status, text = call("POST", "/v1/refunds", body)
            if not 200 <= status < 300:
                raise Failed(status, text)
        return {"refunded": True, "amount": wanted}
    except Failed as failed:
        return {"refunded": False, "reason": json.loads(failed.text)["error"]["code"]}


def find_order(question: str, call: Call) -> dict[str, Any]:
    """The one order that is to be refunded: the duplicate of two, the latest of a customer, or the one named."""
    customer = found(r"customer (cus-\d+)", question)
    if customer:
        orders = ask(call, f"/v1/customers/{customer}/orders")["orders"]
        latest = max(orders, key=lambda order: order["placed"])
        return dict(ask(call, f"/v1/orders/{latest['order_id']}"))
    numbers = re.findall(r"ord-\d+", question)
    orders = [ask(call, f"/v1/orders/{number}") for number in numbers]
    if len(orders) > 1:
        orders = [order for order in orders if order["duplicate_of"] in numbers]
    return dict(orders[0])


def shares(payments: list[dict[str, Any]], wanted: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Each payment that is to be refunded, and how much of it: the first ones first."""
    for payment in payments:
        amount = min(wanted, payment["amount"] - payment["refunded"])
        if amount > 0:
            yield payment, amount
            wanted -= amount


# The catalog --------------------------------------------------------------------------------------------------------

OPERATORS = {"is": "exact", "is not": "not", "is at least": "gte", "is at most": "lte", "contains": "contains"}


def look_up(question: str, call: Call) -> dict[str, Any]:
    """The answer to one question about a table."""
    try:
        if match := re.match(r"Count the rows of (\w+)", question):
            page = ask(call, table(match[1], question, _size=0))
            return {"count": page["filtered_table_rows_count"]}
        if match := re.match(r"Sum (\w+) of (\w+)", question):
            return {"sum": sum(row[match[1]] for row in rows(match[2], question, call))}
        if match := re.match(r"List (\w+) of (\w+)", question):
            return {"list": [row[match[1]] for row in rows(match[2], question, call)]}
        if match := re.match(r"Name the most frequent (\w+) of (\w+)", question):
            page = ask(call, table(match[2], question, _size=0, _facet=match[1]))
            first = page["facet_results"][match[1]]["results"][0]
            return {"value": first["value"], "count": first["count"]}
        if match := re.match(r"Give (\w+) of the row of (\w+) with the (largest|smallest) (\w+)", question):
            order = "_sort_desc" if match[3] == "largest" else "_sort"
            page = ask(call, table(match[2], question, _size=1, _shape="objects", **{order: match[4]}))
            return {"value": page["rows"][0][match[1]]}
        if match := re.match(r"Give (\w+) of row (\S+) of (\w+)\.", question):
            page = ask(call, f"/catalog/{match[3]}/{match[2]}.json?_shape=objects")
            return {"value": page["rows"][0][match[1]]}
        if match := re.match(r"Give (\w+) of the query `(.*)`", question):
            page = ask(call, "/catalog.json?" + urlencode({"sql": match[2], "_shape": "objects"}))
            return {"value": page["rows"][0][match[1]]}
    except Failed as failed:
        return {"error": failed.status}
    return {"error": "not understood"}


def table(name: str, question: str, **parameters: object) -> str:
    """The path that asks for the rows of a table that the question's conditions leave."""
    conditions = re.findall(r'(\w+) (is at least|is at most|is not|is|contains) "([^"]*)"', question)
    pairs = [(f"{column}__{OPERATORS[operator]}", value) for column, operator, value in conditions]
    return f"/catalog/{name}.json?{urlencode([*pairs, *parameters.items()])}"


def rows(name: str, question: str, call: Call) -> Iterator[dict[str, Any]]:
    """All rows, page after page."""
    path = table(name, question, _size=100, _shape="objects")
    page = ask(call, path)
    yield from page["rows"]
    while page["next"]:
        page = ask(call, path + "&" + urlencode({"_next": page["next"]}))
        yield from page["rows"]


# Talking to the API -------------------------------------------------------------------------------------------------


def ask(call: Call, path: str) -> Any:
    """What a GET answers. Raises `Failed` for anything but success."""
    status, text = call("GET", path, None)
    if status != 200:
        raise Failed(status, text)
    return json.loads(text)


def over_http(method: str, path: str, body: Any) -> tuple[int, str]:
    """One call over HTTP, to the address that the environment names."""
    url = urlsplit(os.environ.get("CATALOG_URL") or os.environ["SCORESHEET_TOOLS_URL"])
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    try:
        if body is None:
            connection.request(method, path)
        else:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def found(pattern: str, text: str) -> str:
    """What the pattern's group holds in the text; empty when it is not there."""
    match = re.search(pattern, text)
    return match[1] if match else ""


if __name__ == "__main__":
    print(json.dumps(solve(json.load(sys.stdin), over_http)))
