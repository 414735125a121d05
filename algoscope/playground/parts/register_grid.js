// Registers × tokens as a table: one line per row of the hidden state, with the name of
// the register that holds it at this step, and lines from sources to what was written.

import { draw, make } from "./dom.js";
import { cellNumber, tokenNames } from "./inside.js";
import { changedColumns, writerOf } from "./trace.js";

const named = (entry, k) => (entry.rows.length > 1 ? `${entry.name}[${k + 1}]` : entry.name);

// Return { element, show(trace, step, mode) }; onpoint is called with what is pointed at.
export function registerGrid({ onpoint }) {
  const table = make("table", { "aria-label": "Registers by tokens" });
  const lines = draw("svg", { class: "lines", "aria-hidden": true });
  const element = make("div", { class: "grid", tabindex: 0, role: "group", "aria-label": "Registers; arrow keys step" }, table, lines);
  let cells = new Map(), trace = null;

  function show(next, step, mode) {
    trace = next;
    cells = new Map();
    const { entries } = trace.steps[step], names = tokenNames((trace.time - 1) / 2);
    const holders = new Map();
    for (const entry of entries) entry.rows.forEach((row, k) => holders.set(row, { entry, k }));
    const rows = [...new Set(trace.steps.flatMap((each) => each.entries.flatMap((entry) => entry.rows)))].sort((a, b) => a - b);
    const head = make("tr", {}, make("td", {}), names.map((name) => make("th", { scope: "col" }, name)));
    const body = rows.map((row) => {
      const held = holders.get(row);
      const label = make("th", { scope: "row" }, held ? named(held.entry, held.k) : "·");
      return make("tr", {}, label, names.map((_, token) => cell(held, row, token, mode)));
    });
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, body));
    const last = entries.filter((entry) => entry.isWritten).at(-1);
    const changed = last ? changedColumns(trace, last.register) : [];
    const token = changed.filter((each) => last.counts?.has(each) ?? true).at(-1) ?? changed.at(-1);
    point(step && last ? { entry: last, k: 0, token } : null);
  }

  function cell(held, row, token, mode) {
    if (!held) return make("td", {});
    const { entry, k } = held;
    const value = mode === "difference" ? entry.computed[token][k] - entry.exact[token][k] : entry[mode][token][k];
    const counts = !entry.counts || entry.counts.has(token);
    const isWritten = entry.isWritten && changedColumns(trace, entry.register).includes(token);
    const element = make("td", { class: [isWritten ? "written" : "", counts ? "" : "aside"].join(" ").trim() || null }, cellNumber(value));
    element.addEventListener("pointerenter", () => point({ entry, k, token }));
    element.addEventListener("click", () => point({ entry, k, token }));
    cells.set(`${row},${token}`, element);
    return element;
  }

  function point(at) {
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

  return { element, show };
}

function rowsOf(trace, register, wanted) {
  return trace.data.layout.entries.filter((entry) => entry.register === register)
    .flatMap(({ rows, components }) => rows.filter((_, place) => wanted.has(components[place])));
}
