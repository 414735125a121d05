// A learner's function of two inputs as a field of color, its level lines, and the weight
// vectors that it and the textbook predictors imply.

import { impliedWeights } from "../distances.js";
import { draw, make } from "../dom.js";
import { learnersBeside } from "../learners.js";
import { madeFor, radius } from "../shifts.js";
import { MARGIN, makeFrame, rangeFor } from "./frame.js";

const FINE = 25, COARSE = 7; // queries along the longer side, at rest and while moving
const LEVELS = [-8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8];

export function fieldFrame(app, width) {
  const { x, query } = app.state;
  const height = Math.round(Math.min(Math.max(width * 0.85, 280), 460));
  const most = (axis) => 1.05 * Math.max(Math.abs(query[axis]), ...x.map((each) => Math.abs(each[axis])));
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const ratio = inner.width / inner.height;
  const top = rangeFor(Math.max(most(1), most(0) / ratio));
  return makeFrame(width, height, top * ratio, top);
}

// The label that has the full color; also for points, so that both can be compared.
export const fullColor = (app, frame) => rangeFor(Math.max(frame.top, ...app.state.y.map(Math.abs)), 5);

const mix = (from, to, share) => from.map((each, i) => each + (to[i] - each) * share);

// Blue for negative labels, orange for positive ones, the paper between them.
export function colorOf(value, full, paper) {
  const share = Math.min(Math.abs(value) / full, 1);
  return mix(paper, value < 0 ? [0, 114, 178] : [213, 94, 0], 0.85 * share ** 0.8).map(Math.round);
}

// Whether black can be read better than white on a color, by the contrast of WCAG.
export function isLight(color) {
  const [r, g, b] = color.map((each) => ((each / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

// What the colors mean, from the most negative label to the most positive one.
export function colorKey(app, frame, paper) {
  const full = fullColor(app, frame);
  const stops = [-1, -0.5, 0, 0.5, 1].map((share) => `rgb(${colorOf(share * full, full, paper).join(" ")})`);
  return [`Answer, and labels of the points: −${full} `,
    make("span", { class: "colors", style: `background: linear-gradient(to right, ${stops.join(", ")})` }), ` ${full}`];
}

// The color of the page, which the field has where the answer is 0.
export const paperColor = () => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number);

function grid(app, frame, columns) {
  const rows = Math.max(Math.round((columns * frame.top) / frame.right), 5);
  const place = (i, count, limit) => -limit + (2 * limit * i) / (count - 1);
  const queries = [];
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) queries.push([place(c, columns, frame.right), -place(r, rows, frame.top)]);
  }
  return { rows, columns, values: app.learner.ask(queries) };
}

// Color the canvas below the plot; the browser interpolates between the queries.
function paintField(app, frame, canvas, isFine) {
  const { rows, columns, values } = grid(app, frame, isFine ? FINE : COARSE);
  const paper = paperColor();
  const full = fullColor(app, frame);
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  values.forEach((value, i) => image.data.set([...colorOf(Number.isFinite(value) ? value : 0, full, paper), 255], 4 * i));
  context.putImageData(image, 0, 0);
  // The corners of the grid are centers of pixels: half a pixel lies outside on each side.
  const { inner } = frame;
  const step = [inner.width / (columns - 1), inner.height / (rows - 1)];
  Object.assign(canvas.style, {
    left: `${MARGIN.left - step[0] / 2}px`, top: `${MARGIN.top - step[1] / 2}px`,
    width: `${inner.width + step[0]}px`, height: `${inner.height + step[1]}px`,
    clipPath: `inset(${step[1] / 2}px ${step[0] / 2}px)`,
  });
  return { rows, columns, values };
}

// Lines on which the function has a whole value, by marching squares.
function levelLines(frame, { rows, columns, values }) {
  const at = (r, c) => values[r * columns + c];
  const px = (c) => MARGIN.left + (c / (columns - 1)) * frame.inner.width;
  const py = (r) => MARGIN.top + (r / (rows - 1)) * frame.inner.height;
  return LEVELS.map((level) => {
    const parts = [];
    for (let r = 0; r + 1 < rows; r++) {
      for (let c = 0; c + 1 < columns; c++) {
        const corners = [[r, c], [r, c + 1], [r + 1, c + 1], [r + 1, c]];
        const ends = [];
        corners.forEach(([r0, c0], i) => {
          const [r1, c1] = corners[(i + 1) % 4];
          const a = at(r0, c0) - level, b = at(r1, c1) - level;
          if (a < 0 === b < 0) return;
          const t = a / (a - b);
          ends.push(`${px(c0 + t * (c1 - c0)).toFixed(1)} ${py(r0 + t * (r1 - r0)).toFixed(1)}`);
        });
        for (let i = 0; i + 1 < ends.length; i += 2) parts.push(`M${ends[i]}L${ends[i + 1]}`);
      }
    }
    return draw("path", { class: level ? "level" : "level zero", d: parts.join("") });
  });
}

function arrow(frame, [a, b], kind) {
  const { toX, toY } = frame;
  const from = [toX(0), toY(0)], to = [toX(a), toY(b)];
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const wing = (turn) => `${to[0] - 11 * Math.cos(angle + turn)} ${to[1] - 11 * Math.sin(angle + turn)}`;
  const d = `M${from.join(" ")}L${to.join(" ")}M${wing(0.42)}L${to.join(" ")}L${wing(-0.42)}`;
  const halo = kind.startsWith("own") ? [draw("path", { class: "halo", d })] : [];
  return [...halo, draw("path", { class: `line arrow ${kind}`, d })];
}

export function drawField(app, frame, canvas, isFine) {
  const parts = [];
  if (!app.learner.problem) parts.push(...levelLines(frame, paintField(app, frame, canvas, isFine)));
  if (madeFor(app.model)) {
    const size = radius(2) * (frame.toX(1) - frame.toX(0));
    parts.push(
      draw("circle", { class: "ring", cx: frame.toX(0), cy: frame.toY(0), r: size }),
      draw("text", { class: "note", x: frame.toX(0), y: frame.toY(-radius(2)) + 14, "text-anchor": "middle" }, "95 % of training inputs"),
    );
  }
  for (const { kind, learner } of learnersBeside(app)) {
    parts.push(...arrow(frame, impliedWeights(app, learner), `beside of-${kind}`));
  }
  if (!app.learner.problem) parts.push(...arrow(frame, impliedWeights(app, app.learner), "own"));
  return parts;
}
