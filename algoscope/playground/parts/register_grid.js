// Registers × tokens as a table: one line per row of the hidden state, with the name of
// the register that holds it at this step, and lines from sources to what was written.

import { draw, make } from "./dom.js";
import { cellNumber, tokenNames } from "./inside.js";
import { changedColumns, writerOf } from "./trace.js";

const named = (entry, k) => (entry.rows.length > 1 ? `${entry.name}[${k + 1}]` : entry.name);

// Return { element, show(trace, step, mode), move(rows, tokens) }; onpoint is called with what
// is pointed at, by the pointer or by `move`.
export function registerGrid({ onpoint }) {
  const table = make("table", { "aria-label": "Registers by tokens" });
  const lines = draw("svg", { class: "lines", "aria-hidden": "true" });
  const element = make("div", { class: "grid", tabindex: 0, role: "group", "aria-label": "Registers. Left and right step; up and down, and left and right with Shift, point at numbers" }, table, lines);
  let cells = new Map(), trace = null, pointed = null, held = [];

  function show(next, step, mode) {
    trace = next;
    cells = new Map();
    const { entries } = trace.steps[step], names = tokenNames((trace.time - 1) / 2);
    const holders = new Map();
    for (const entry of entries) entry.rows.forEach((row, k) => holders.set(row, { entry, k }));
    const rows = [...new Set(trace.steps.flatMap((each) => each.entries.flatMap((entry) => entry.rows)))].sort((a, b) => a - b);
    const head = make("tr", {}, make("td", {}), names.map((name) => make("th", { scope: "col" }, name)));
    held = rows.filter((row) => holders.has(row)).map((row) => holders.get(row));
    const body = rows.map((row) => {
      const holder = holders.get(row);
      const label = make("th", { scope: "row" }, holder ? named(holder.entry, holder.k) : "·");
      return make("tr", { class: holder ? null : "idle" }, label, names.map((_, token) => cell(holder, row, token, mode)));
    });
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, body));
    const last = entries.filter((entry) => entry.isWritten).at(-1);
    const changed = last ? changedColumns(trace, last.register) : [];
    const token = changed.filter((each) => last.counts?.has(each) ?? true).at(-1) ?? changed.at(-1);
    point(step && last ? { entry: last, k: 0, token } : null);
  }

  function cell(holder, row, token, mode) {
    if (!holder) return make("td", {});
    const { entry, k } = holder;
    const value = mode === "difference" ? entry.computed[token][k] - entry.exact[token][k] : entry[mode][token][k];
    const counts = !entry.counts || entry.counts.has(token);
    const isWritten = entry.isWritten && changedColumns(trace, entry.register).includes(token);
    const element = make("td", { class: [isWritten ? "written" : "", counts ? "" : "aside"].join(" ").trim() || null }, cellNumber(value));
    element.addEventListener("pointerenter", () => point({ entry, k, token }));
    element.addEventListener("click", () => point({ entry, k, token }));
    cells.set(`${row},${token}`, element);
    return element;
  }

  function move(rows, tokens) {
    const place = held.findIndex(({ entry, k }) => entry === pointed?.entry && k === pointed.k);
    const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
    const next = held[within(place + rows, held.length)];
    point({ ...next, token: within((pointed?.token ?? 0) + tokens, trace.time) });
    cells.get(`${next.entry.rows[next.k]},${pointed.token}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function point(at) {
    pointed = at;
    for (const each of cells.values()) each.classList.remove("source", "pointed");
    lines.replaceChildren();
    if (!at) {
      onpoint(null);
      return;
    }
    const { entry, k, token } = at;
    const writer = writerOf(trace, entry.register, token);
    const target = cells.get(`${entry.rows[k]},${token}`);
    target?.classList.add("pointed");
    for (const source of writer?.sources ?? []) {
      for (const row of rowsOf(trace, source.register, source.components ?? new Set([k]))) {
        const from = cells.get(`${row},${source.token}`);
        if (!from || from === target) continue;
        from.classList.add("source");
        lines.append(draw("path", { d: arc(from, target), "stroke-width": source.weight === null ? 1.4 : 1 + 1.6 * source.weight }));
      }
    }
    lines.setAttribute("width", table.offsetWidth);
    lines.setAttribute("height", table.offsetHeight);
    onpoint({ entry, k, token, name: named(entry, k), writer });
  }

  // Within a column the line goes beside the numbers, between columns above them.
  function arc(from, to) {
    const right = (each) => [each.offsetLeft + each.offsetWidth - 4, each.offsetTop + each.offsetHeight / 2];
    const [x1, y1] = right(from), [x2, y2] = right(to);
    const bend = x1 === x2 ? 14 + Math.abs(y2 - y1) / 12 : 0;
    return `M${x1} ${y1}Q${(x1 + x2) / 2 + bend} ${(y1 + y2) / 2 - (bend ? 0 : 18)} ${x2} ${y2}`;
  }

  return { element, show, move };
}

function rowsOf(trace, register, wanted) {
  return trace.data.layout.entries.filter((entry) => entry.register === register)
    .flatMap(({ rows, components }) => rows.filter((_, place) => wanted.has(components[place])));
}
