// The frame of a plot: its size and range, axes, and the way between data and pixels.

import { draw } from "../dom.js";

export const MARGIN = { left: 34, right: 8, top: 8, bottom: 24 };
const RANGES = [3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 1000, 3000, 1e4, 1e5, 1e6, 1e7];

// The smallest round range that holds a value.
export const rangeFor = (value, least = 3) => RANGES.find((each) => each >= least && each >= value) ?? value;

// Return the frame: x from −right to right, y from −top to top.
export function makeFrame(width, height, right, top) {
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  return {
    width, height, right, top, inner,
    toX: (x) => MARGIN.left + ((x + right) / (2 * right)) * inner.width,
    toY: (y) => MARGIN.top + ((top - y) / (2 * top)) * inner.height,
    fromX: (pixel) => ((pixel - MARGIN.left) / inner.width) * 2 * right - right,
    fromY: (pixel) => top - ((pixel - MARGIN.top) / inner.height) * 2 * top,
  };
}

// Steps of 1, 2 or 5 times a power of ten, at most about six on an axis.
export function ticks(limit) {
  const rough = limit / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = -Math.floor(limit / step) * step; at <= limit + step / 1e6; at += step) {
    found.push(Math.abs(at) < step / 1e6 ? 0 : at);
  }
  return found;
}

const label = (value) => String(Number(value.toPrecision(3))).replace("-", "−");

export function axes(frame, across, up) {
  const group = draw("g", { class: "axes" });
  const { toX, toY, right, top, width, height } = frame;
  const bottom = height - MARGIN.bottom;
  group.append(
    draw("line", { x1: toX(-right), x2: toX(right), y1: toY(0), y2: toY(0) }),
    draw("line", { x1: toX(0), x2: toX(0), y1: toY(-top), y2: toY(top) }),
  );
  for (const at of ticks(right)) {
    group.append(draw("text", { x: toX(at), y: bottom + 15, "text-anchor": "middle" }, label(at)));
  }
  for (const at of ticks(top)) {
    group.append(draw("text", { x: MARGIN.left - 6, y: toY(at) + 4, "text-anchor": "end" }, label(at)));
  }
  group.append(
    draw("text", { x: width - MARGIN.right - 4, y: toY(0) - 6, "text-anchor": "end", class: "name" }, across),
    draw("text", { x: toX(0) + 6, y: MARGIN.top + 11, class: "name" }, up),
  );
  return group;
}
