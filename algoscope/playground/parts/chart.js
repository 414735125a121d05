// A small chart in SVG: axes with a few labels, curves, and marks.

import { draw } from "./dom.js";
import { cellNumber } from "./inside.js";

const MARGIN = { left: 54, right: 10, top: 12, bottom: 34 };

function ticks(low, high, log) {
  if (log) {
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
    const step = Math.max(1, Math.ceil((last - first) / 4));
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => 10 ** (first + k * step));
  }
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const first = Math.ceil(low / step - 1e-9) * step, found = [];
  for (let k = 0; first + k * step <= high + 1e-9 * step; k++) found.push(Number((first + k * step).toPrecision(6)));
  return found;
}

const power = (value) => {
  const digits = [...String(Math.round(Math.log10(value)))];
  return `10${digits.map((each) => (each === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[each])).join("")}`;
};

// Return { svg, layer, x, y }: an empty chart, a group to draw into, and its scales. A bare
// chart has no scale for y.
export function chart({ width = 360, height = 250, label, xs, ys, xLabel, yLabel, logY = false, whole = false, bare = false }) {
  const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
  const to = logY ? (v) => Math.log10(Math.max(v, ys[0])) : (v) => v;
  const [low, high] = ys.map(to);
  const x = (v) => MARGIN.left + ((v - xs[0]) / (xs[1] - xs[0] || 1)) * (right - MARGIN.left);
  const y = (v) => bottom - ((to(v) - low) / (high - low || 1)) * (bottom - MARGIN.top);
  const layer = draw("g", {});
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label });
  for (const value of bare ? [] : ticks(ys[0], ys[1], logY)) {
    svg.append(draw("line", { x1: MARGIN.left, x2: right, y1: y(value), y2: y(value), class: "rule" }),
      draw("text", { x: MARGIN.left - 6, y: y(value) + 4, class: "tick end" }, logY ? power(value) : cellNumber(value)));
  }
  for (const value of ticks(xs[0], xs[1], false).filter((each) => !whole || Number.isInteger(each))) {
    svg.append(draw("text", { x: x(value), y: bottom + 16, class: "tick middle" }, cellNumber(value)));
  }
  svg.append(
    draw("text", { x: (MARGIN.left + right) / 2, y: height - 4, class: "tick middle" }, xLabel),
    draw("text", { x: 12, y: (MARGIN.top + bottom) / 2, class: "tick middle", transform: `rotate(-90 12 ${(MARGIN.top + bottom) / 2})` }, yLabel),
    layer,
  );
  return { svg, layer, x, y };
}

export const path = (points) => points
  .map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
