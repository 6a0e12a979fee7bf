"use strict";
// The list of episodes. Text reaches the page by textContent alone; details are parsed when they are opened.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const at = (id) => document.getElementById(id);
  if (!at("index")) return;
  const { tasks, reasons, fates, meanings, rows } = read("index");
  const STEP = 100;
  const parsed = new Map();
  const firstOf = new Map();
  rows.forEach((row, number) => { if (!firstOf.has(row[0])) firstOf.set(row[0], number); });
  let shown = 0;
  let found = rows;
  let exact = null;

  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const within = (parent, ...children) => { parent.append(...children); return parent; };
  const line = (tag, cells, head) => {
    const row = make("tr");
    cells.forEach((cell, place) => {
      const node = make(tag === "th" || place === 0 && head ? "th" : "td", cell instanceof Node ? null : cell);
      if (node.tagName === "TH") node.scope = tag === "th" ? "col" : "row";
      if (cell instanceof Node) node.append(cell);
      row.append(node);
    });
    return row;
  };
  const table = (caption, kind, heading, body, head = true) => {
    const node = within(make("table", null, kind), make("caption", caption, "unseen"));
    if (heading) node.append(within(make("thead"), line("th", heading)));
    return within(node, within(make("tbody"), ...body.map((cells) => line("td", cells, head))));
  };
  const wide = (name, node) => {
    const holder = within(make("div", null, "wide"), node);
    holder.tabIndex = 0;
    holder.setAttribute("role", "group");
    holder.setAttribute("aria-label", name);
    return holder;
  };
  const block = (text, name) => {
    const node = make("pre");
    node.tabIndex = 0;
    node.setAttribute("role", "group");
    node.setAttribute("aria-label", name);
    if (name !== "patch.diff") { node.textContent = text; return node; }
    for (const each of text.split("\n").slice(0, 20000)) {
      const kind = /^\+(?!\+\+)/.test(each) ? "added" : /^-(?!--)/.test(each) ? "removed" : "";
      node.append(kind ? make("span", each, kind) : each, "\n");
    }
    return node;
  };

  const call = (one, number) => {
    const cell = make("div");
    cell.append(make("div", one.asked));
    if (one.body) cell.append(make("div", `body ${one.body}`));
    for (const error of one.errors) cell.append(make("div", `schema: ${error}`, "differs"));
    if (one.outcome === "miss") {
      const miss = make("div", null, "miss");
      miss.append(make("strong", "not recorded", "differs"), one.kind ? ` (${one.kind})` : "");
      if (one.nearest) {
        miss.append(make("div", `nearest recording: ${one.nearest.asked}`));
        const list = make("ul");
        for (const each of one.nearest.difference) list.append(make("li", each));
        if (one.nearest.difference.length) miss.append(list);
      } else {
        miss.append(make("div", "no recording is near it"));
      }
      cell.append(miss);
    }
    return [String(number), cell, one.tool || "", one.via, one.outcome + (one.repeat ? ", beyond the recording" : ""), one.status, one.at];
  };

  const detail = (one) => {
    const parts = [];
    const title = (text) => parts.push(make("h3", text));
    for (const [key, value] of one.facts) if (key === "detail") parts.push(make("p", value));
    title("Answer against expected");
    if (one.expected.members.length) {
      parts.push(table("Answer against expected", "answers", ["member", "expected", "answered", "verdict"], one.expected.members.map(
        ([key, expected, answered, same]) => [key, expected, answered, make("span", same ? "same" : "differs", same ? "same" : "differs")])));
    } else if (one.expected.why_not) {
      parts.push(make("p", `What was expected is not shown: ${one.expected.why_not}.`));
    }
    if (one.answer === "null") parts.push(make("p", "It gave no answer."));
    else parts.push(make("p", "Its whole answer:"), block(one.answer, "the whole answer"));
    title("Calls");
    if (one.calls.rows.length) {
      parts.push(wide("Calls", table("Calls", "calls", ["no.", "asked", "tool", "by", "outcome", "status", "s"], one.calls.rows.map(call))));
    } else if (!one.calls.note) {
      parts.push(make("p", "It called no tool."));
    }
    if (one.calls.note) parts.push(make("p", one.calls.note));
    const texts = (patch) => {
      for (const [name, text] of one.texts) {
        if ((name === "patch.diff") !== patch) continue;
        title(patch ? "Patch" : name);
        parts.push(block(text, name));
      }
    };
    texts(true);
    if (one.steps.length) {
      title("Trajectory");
      parts.push(table("Trajectory", "steps", ["step", "who", "what"], one.steps));
    }
    if (one.moments.length) {
      title("When");
      parts.push(table("When it asked what", "moments", ["s", "who", "what"], one.moments));
    }
    texts(false);
    title("What is known of it");
    parts.push(table("Facts", "facts", null, one.facts));
    return parts;
  };

  const open = (number, button, row) => {
    const task = rows[number][0];
    if (!parsed.has(task)) parsed.set(task, read(`t${task}`));
    const cell = make("td");
    cell.colSpan = 7;
    cell.append(within(make("div", null, "inner"), ...detail(parsed.get(task)[number - firstOf.get(task)])));
    const holder = within(make("tr", null, "detail"), cell);
    holder.id = `d${number}`;
    button.setAttribute("aria-controls", holder.id);
    row.after(holder);
  };

  const entry = (number) => {
    const [task, repeat, attempt, fate, reason, calls, misses] = rows[number];
    const row = make("tr");
    const button = make("button", tasks[task]);
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const closed = button.getAttribute("aria-expanded") === "false";
      button.setAttribute("aria-expanded", String(closed));
      if (closed) open(number, button, row);
      else { row.nextElementSibling.remove(); button.removeAttribute("aria-controls"); }
    });
    const first = within(make("th"), button);
    first.scope = "row";
    return within(row, first, ...[repeat, attempt, meanings[fate], reasons[reason], calls, misses].map((each) => make("td", String(each))));
  };

  const more = () => {
    const until = Math.min(found.length, shown + STEP);
    const piece = document.createDocumentFragment();
    for (; shown < until; shown += 1) piece.append(entry(found[shown]));
    at("list").append(piece);
    at("more").hidden = shown >= found.length;
    at("count").textContent = `${found.length} of ${rows.length} attempts; ${shown} are shown`;
  };

  const filter = () => {
    const name = at("by-task").value.trim().toLowerCase();
    const fate = at("by-fate").value;
    const reason = at("by-reason").value;
    const miss = at("by-miss").checked;
    found = [];
    rows.forEach((row, number) => {
      if (exact !== null ? tasks[row[0]] !== exact : name && !tasks[row[0]].toLowerCase().includes(name)) return;
      if (fate !== "" && row[3] !== Number(fate)) return;
      if (reason !== "" && row[4] !== Number(reason)) return;
      if (miss && !row[6]) return;
      found.push(number);
    });
    shown = 0;
    at("list").replaceChildren();
    more();
  };

  const follow = () => {
    const match = /^#task=([A-Za-z0-9._-]+)$/.exec(location.hash);
    if (!match) return;
    exact = match[1];
    at("by-task").value = exact;
    filter();
    at("episodes").scrollIntoView();
    const button = at("list").querySelector("button");
    if (button) button.focus({ preventScroll: true });
  };

  const option = (select, value, text) => { const node = make("option", text); node.value = value; select.append(node); };
  fates.forEach((_, number) => option(at("by-fate"), String(number), meanings[number]));
  reasons.forEach((each, number) => option(at("by-reason"), String(number), each));
  at("explorer").hidden = false;
  at("without").remove();
  at("filter").addEventListener("submit", (event) => event.preventDefault());
  at("by-task").addEventListener("input", () => { exact = null; filter(); });
  for (const id of ["by-fate", "by-reason", "by-miss"]) at(id).addEventListener("change", filter);
  at("more").addEventListener("click", more);
  addEventListener("hashchange", follow);
  filter();
  follow();
})();
