// The careful agent in Node 18 or newer: the rules of careful.py, over fetch.
//
//     scoresheet run PACK --agent 'node examples/agents/careful.mjs' --seat laptop-a
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf8"));
const base = process.env.CATALOG_URL || process.env.SCORESHEET_TOOLS_URL;
const question = task.prompt.split("\n")[0];

class Failed extends Error {
  constructor(status, text) {
    super(`status ${status}`);
    Object.assign(this, { status, text });
  }
}

async function ask(path, body) {
  const options = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(base + path, options);
  const text = await response.text();
  if (!response.ok) throw new Failed(response.status, text);
  return JSON.parse(text);
}

// Refunds

async function findOrder() {
  const customer = question.match(/customer (cus-\d+)/)?.[1];
  if (customer) {
    const { orders } = await ask(`/v1/customers/${customer}/orders`);
    const latest = orders.reduce((a, b) => (b.placed > a.placed ? b : a));
    return ask(`/v1/orders/${latest.order_id}`);
  }
  const numbers = question.match(/ord-\d+/g);
  const orders = [];
  for (const number of numbers) orders.push(await ask(`/v1/orders/${number}`));
  return orders.length > 1 ? orders.find((order) => numbers.includes(order.duplicate_of)) : orders[0];
}

async function refund() {
  const refused = (reason) => ({ refunded: false, reason });
  try {
    const order = await findOrder();
    if (task.prompt.match(/Today is (\S+)\./)[1] > order.refund_until) return refused("window_closed");
    const payments = [];
    for (const payment of order.payments) payments.push(await ask(`/v1/payments/${payment}`));
    if (!payments.every((payment) => payment.captured)) return refused("not_captured");
    const left = payments.reduce((sum, payment) => sum + payment.amount - payment.refunded, 0);
    if (left === 0) return refused("already_refunded");
    const wanted = Number(question.match(/Refund (\d+) cents/)?.[1] ?? left);
    if (wanted > left) return refused("amount_exceeds_remaining");
    let open = wanted;
    for (const payment of payments) {
      const amount = Math.min(open, payment.amount - payment.refunded);
      if (amount > 0) await ask("/v1/refunds", { payment_id: payment.payment_id, amount });
      open -= amount;
    }
    return { refunded: true, amount: wanted };
  } catch (error) {
    if (error instanceof Failed) return refused(JSON.parse(error.text).error.code);
    throw error;
  }
}

// The catalog

const operators = { is: "exact", "is not": "not", "is at least": "gte", "is at most": "lte", contains: "contains" };

function table(name, parameters) {
  const query = new URLSearchParams();
  for (const [, column, operator, value] of question.matchAll(
    /(\w+) (is at least|is at most|is not|is|contains) "([^"]*)"/g,
  ))
    query.append(`${column}__${operators[operator]}`, value);
  for (const [key, value] of Object.entries(parameters)) query.append(key, value);
  return `/catalog/${name}.json?${query}`;
}

async function column(name, tableName) {
  const values = [];
  for (let next = null, first = true; first || next; first = false) {
    const more = next ? { _next: next } : {};
    const page = await ask(table(tableName, { _size: 100, _shape: "objects", ...more }));
    values.push(...page.rows.map((row) => row[name]));
    next = page.next;
  }
  return values;
}

async function lookUp() {
  let m;
  if ((m = question.match(/^Count the rows of (\w+)/)))
    return { count: (await ask(table(m[1], { _size: 0 }))).filtered_table_rows_count };
  if ((m = question.match(/^Sum (\w+) of (\w+)/)))
    return { sum: (await column(m[1], m[2])).reduce((sum, value) => sum + value, 0) };
  if ((m = question.match(/^List (\w+) of (\w+)/))) return { list: await column(m[1], m[2]) };
  if ((m = question.match(/^Name the most frequent (\w+) of (\w+)/))) {
    const page = await ask(table(m[2], { _size: 0, _facet: m[1] }));
    const { value, count } = page.facet_results[m[1]].results[0];
    return { value, count };
  }
  let path;
  if ((m = question.match(/^Give (\w+) of the row of (\w+) with the (largest|smallest) (\w+)/)))
    path = table(m[2], { _size: 1, _shape: "objects", [m[3] === "largest" ? "_sort_desc" : "_sort"]: m[4] });
  else if ((m = question.match(/^Give (\w+) of row (\S+) of (\w+)\./)))
    path = `/catalog/${m[3]}/${m[2]}.json?_shape=objects`;
  else if ((m = question.match(/^Give (\w+) of the query `(.*)`/)))
    path = `/catalog.json?${new URLSearchParams({ sql: m[2], _shape: "objects" })}`;
  else return { error: "not understood" };
  return { value: (await ask(path)).rows[0][m[1]] };
}

async function main() {
  if (/^(Refund|Orders)/.test(question)) return refund();
  try {
    return await lookUp();
  } catch (error) {
    if (error instanceof Failed) return { error: error.status };
    throw error;
  }
}

console.log(JSON.stringify(await main()));
