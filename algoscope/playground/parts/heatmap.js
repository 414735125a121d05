// A map of numbers, one cell per pair of row and column, to look at, point at and walk
// through with the arrow keys.

import { make } from "./dom.js";

const rgb = (color) => {
  const value = parseInt(color.slice(1), 16);
  return `${value >> 16}, ${(value >> 8) & 255}, ${value & 255}`;
};
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const FOOT = 16; // pixels for the names of columns

// Return { element, show({ values, rows, columns, marked, bare }) }.
//   values   (row, column) => number, or null for an empty cell
//   rows, columns    their names; with `bare`, columns are not named
//   marked   a set of "row,column" that are framed
//   onpoint  called with row and column, or null, when the pointer or the keys move
//   onpick   called with row and column at a click or at Enter
export function heatmap({ label, cell = 14, signed = false, onpoint = () => {}, onpick = null }) {
  const canvas = make("canvas", { tabindex: 0, role: onpick ? "application" : "img", "aria-label": label, class: "map" });
  const element = make("div", { class: "scroll" }, canvas);
  let shown = null, at = null;

  function paint() {
    const { values, rows, columns, marked, largest, left, bare } = shown;
    const scale = devicePixelRatio || 1, side = shown.cell;
    const width = left + columns.length * side, height = rows.length * side + (bare ? 0 : FOOT);
    Object.assign(canvas, { width: width * scale, height: height * scale });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const positive = rgb(colorOf("--color-0")), negative = rgb(colorOf("--color-1"));
    const { color: ink, fontFamily } = getComputedStyle(canvas);
    context.font = `10px ${fontFamily}`;
    context.fillStyle = ink;
    const every = Math.ceil(11 / side); // names that do not fit are left out
    context.textAlign = "right";
    rows.forEach((name, r) => { if (r % every === 0) context.fillText(name, left - 5, (r + 0.5) * side + 3); });
    context.textAlign = "center";
    const wide = Math.ceil(15 / side), last = columns.length - 1;
    const fitting = columns.map((name) => (name === "query" ? "q" : String(name)));
    if (!bare) fitting.forEach((name, c) => { if (c === last || (c % wide === 0 && last - c >= wide)) context.fillText(name, left + (c + 0.5) * side, height - 4); });
    context.translate(left, 0);
    rows.forEach((_, r) => columns.forEach((_, c) => {
      const value = values(r, c);
      if (value === null) return;
      const share = Math.min(Math.abs(value) / largest, 1);
      context.fillStyle = `rgba(${signed && value < 0 ? negative : positive}, ${share.toFixed(3)})`;
      context.fillRect(c * side, r * side, side - 1, side - 1);
      context.strokeStyle = "rgba(128, 128, 128, 0.25)";
      context.lineWidth = 0.5;
      context.strokeRect(c * side + 0.25, r * side + 0.25, side - 1.5, side - 1.5);
    }));
    const frame = (r, c, width) => {
      context.strokeStyle = ink;
      context.lineWidth = width;
      context.strokeRect(c * side + 1, r * side + 1, side - 3, side - 3);
    };
    for (const place of marked ?? []) frame(...place.split(",").map(Number), 2);
    if (at) frame(at[0], at[1], 1);
  }

  function point(next) {
    at = next;
    paint();
    onpoint(at && at[0], at && at[1]);
  }
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - shown.left) / shown.cell), r = Math.floor((event.clientY - box.top) / shown.cell);
    return shown.rows[r] === undefined || shown.columns[c] === undefined ? null : [r, c];
  };
  canvas.addEventListener("pointermove", (event) => point(under(event)));
  canvas.addEventListener("pointerdown", (event) => point(under(event)));
  canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) point(null); });
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("click", (event) => {
    const place = under(event);
    if (onpick && place) onpick(...place);
  });
  canvas.addEventListener("keydown", (event) => {
    const [dr, dc] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    const picks = onpick && at && (event.key === "Enter" || event.key === " ");
    if (!dr && !dc && !picks) return;
    event.preventDefault();
    if (picks) onpick(...at);
    else {
      const [r, c] = at ?? [-dr > 0 ? shown.rows.length : dr ? -1 : 0, -dc > 0 ? shown.columns.length : dc ? -1 : 0];
      const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
      point([within(r + dr, shown.rows.length), within(c + dc, shown.columns.length)]);
    }
  });

  return {
    element,
    canvas,
    show(next) {
      let largest = next.largest ?? 0;
      if (!largest) {
        next.rows.forEach((_, r) => next.columns.forEach((_, c) => {
          largest = Math.max(largest, Math.abs(next.values(r, c) ?? 0));
        }));
      }
      const left = 8 + 6 * Math.max(...next.rows.map((name) => String(name).length));
      shown = { cell, left, ...next, largest: largest || 1 };
      if (at && (at[0] >= next.rows.length || at[1] >= next.columns.length)) at = null;
      paint();
      if (at) onpoint(at[0], at[1]);
    },
  };
}
