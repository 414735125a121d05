// What the panels below the first screen share: the model that they open, the examples
// that it reads, names of tokens, and answers after every layer.

import { readOut } from "./learners.js";
import { layerNorm } from "./kernels.js";
import { encode } from "./transformer.js";

const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";
export const subscript = (number) => [...String(number)].map((digit) => SUBSCRIPTS[digit]).join("");

// x₁ y₁ x₂ … and the query, which is the last x.
export function tokenNames(examples) {
  const names = [];
  for (let i = 1; i <= examples; i++) names.push(`x${subscript(i)}`, `y${subscript(i)}`);
  return [...names, "query"];
}

// The model to open: the chosen one, or the first trained one with as many inputs where a
// textbook predictor is chosen; null if there is none.
export function openedModel(app) {
  const dim = app.state.query.length;
  const alike = [...app.models.values()].filter((model) => model.dim === dim);
  return app.model ?? alike.find((model) => model.kind === "trained") ?? alike[0] ?? null;
}

// The examples that a model reads: those of the page, as many as fit, and the query.
export function situation(app, model) {
  const n = Math.min(app.state.x.length, model.maxExamples);
  return { x: app.state.x.slice(0, n), y: app.state.y.slice(0, n), query: app.state.query, n };
}

const REST = 5; // how many times as long as a panel took to draw the next one waits in a gesture
const waiting = new Set(); // panels to draw, in turn
let isAsked = false, resumes = 0;

// Draw the panels that wait, all of them unless a gesture is under way.
export function drawWaiting(app) {
  isAsked = false;
  for (const panel of waiting) {
    const started = performance.now();
    if (app.isMoving && started < resumes) break;
    waiting.delete(panel);
    panel();
    resumes = performance.now() + REST * (performance.now() - started);
  }
  if (waiting.size) askToDraw(app);
}

function askToDraw(app) {
  if (!isAsked) requestAnimationFrame(() => drawWaiting(app));
  isAsked = true;
}

// Call `follow` now, and after changes of the state while the panel is open, at most once
// per frame. While a gesture is under way, open panels take turns, so that the plot that
// is dragged in stays fluent.
export function whileOpen(place, app, follow) {
  const details = place.closest("details");
  const panel = () => { if (details.open) follow(); };
  const later = () => {
    waiting.add(panel);
    askToDraw(app);
  };
  app.subscribe(later);
  details.addEventListener("toggle", later);
  follow();
}

// The run of the opened model on the page's examples and query, shared by the panels.
export function openedRun(app, model) {
  app.kept.opened ??= runWhole(model, situation(app, model), { attention: true });
  return app.kept.opened;
}

// Run the whole sequence, the query included.
export function runWhole(model, { x, y, query }, options) {
  return model.transformer.run(encode([...x, query], [...y, 0], model.dim), options);
}

// What a model answers to queries after the examples of a whole run: { layers: [ℓ][query],
// own: [query] }, after every layer and in the end. Without a read-out for each layer, that
// of the last is used for all.
export function askLayers(model, run, queries) {
  const { transformer, readouts } = model;
  const { hidden, output } = transformer.ask(run, queries, run.time - 1, { layers: true });
  const layers = hidden.map((states, layer) => (readouts
    ? readOut(readouts, layer, states, transformer.hidden)
    : lastReadOut(transformer, states)));
  return { layers, own: output };
}

function lastReadOut(transformer, states) {
  const { hidden: size, block, w_o: weights, b_o: bias } = transformer;
  const count = states.length / size;
  const read = block.preNorm ? layerNorm(states, count, size, block.epsilon) : states;
  return Float64Array.from({ length: count }, (_, i) => {
    let sum = bias[0];
    for (let k = 0; k < size; k++) sum += weights[k] * read[i * size + k];
    return sum;
  });
}

// The weights that answers imply: least squares of the answers on the queries, through 0.
export function impliedWeights(queries, answers) {
  const dim = queries[0].length;
  const rows = Array.from({ length: dim }, (_, i) => [
    ...Array.from({ length: dim }, (_, j) => queries.reduce((s, q) => s + q[i] * q[j], 0)),
    queries.reduce((s, q, t) => s + q[i] * answers[t], 0),
  ]);
  for (let p = 0; p < dim; p++) {
    const pivot = rows.slice(p).reduce((best, row, k) => (Math.abs(row[p]) > Math.abs(rows[best][p]) ? p + k : best), p);
    [rows[p], rows[pivot]] = [rows[pivot], rows[p]];
    for (let r = 0; r < dim; r++) {
      if (r === p || !rows[p][p]) continue;
      const factor = rows[r][p] / rows[p][p];
      for (let c = p; c <= dim; c++) rows[r][c] -= factor * rows[p][c];
    }
  }
  return rows.map((row, i) => (row[i] ? row[dim] / row[i] : 0));
}

// A number with three digits, as cells of grids show it.
export function cellNumber(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "∞";
  if (size < 1e-9) return "0";
  const text = size >= 1e4 || size < 1e-3 ? value.toExponential(1).replace("e+", "e")
    : String(Number(value.toPrecision(3)));
  return text.replaceAll("-", "−");
}
