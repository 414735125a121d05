// Depth: what the learner would answer after each layer, on its way to least squares.
//
// The hidden state of the query after layer ℓ is read out by a linear read-out that Python
// fitted to that layer. Beside it are gradient descent and Newton's method after as many
// steps.

import { chart, path } from "./chart.js";
import { randomNumbers } from "./datasets.js";
import { draw, make, shortNumber, slider } from "./dom.js";
import { askLayers, cellNumber, impliedWeights, openedModel, openedRun, runWhole, situation, whileOpen } from "./inside.js";
import { gdIterates, newtonIterates } from "./iterates.js";
import { olsWeights } from "./predictors.js";

const QUERIES = 32, SMALLEST = 1e-8, MOST_STEPS = 16;
const RATE = 0.5; // c of GD; above 2 it diverges
const dot = (a, b) => a.reduce((sum, each, k) => sum + each * b[k], 0);

// Inputs to compare answers at: x ~ N(0, I), always the same.
export function probes(dim) {
  const { normal } = randomNumbers(7);
  return Array.from({ length: QUERIES }, () => Array.from({ length: dim }, normal));
}

// Return { run, ols, gd, newton, weights, nearest, spd, own }: weights after every layer or step,
// how many steps are nearest to each layer, and SPD, the squared distance of predictions to
// those of least squares, over d; `own` is that of the learner's own answers.
export function walk(model, where, rate = RATE, run = runWhole(model, where)) {
  const { dim } = model, queries = probes(dim);
  const { layers, own } = askLayers(model, run, queries);
  const depth = layers.length - 1;
  const ols = olsWeights(where.x, where.y, dim);
  const solved = queries.map((query) => dot(ols, query));
  const distance = (answers) => answers.reduce((sum, each, t) => sum + (each - solved[t]) ** 2, 0) / QUERIES / dim;
  const of = (iterates) => iterates.map((w) => distance(queries.map((query) => dot(w, query))));
  const gd = gdIterates(where.x, where.y, dim, depth, rate), newton = newtonIterates(where.x, where.y, dim, depth);
  const apart = (one, other) => one.reduce((sum, each, t) => sum + (each - other[t]) ** 2, 0);
  const nearest = (iterates) => {
    const predicted = iterates.map((w) => queries.map((query) => dot(w, query)));
    return layers.map((answers) => {
      const far = predicted.map((each) => apart(each, answers));
      return far.indexOf(Math.min(...far));
    });
  };
  return {
    run, ols, gd, newton,
    nearest: { gd: nearest(gdIterates(where.x, where.y, dim, MOST_STEPS, rate)), newton: nearest(newtonIterates(where.x, where.y, dim, MOST_STEPS)) },
    weights: layers.map((answers) => impliedWeights(queries, [...answers])),
    spd: { layers: layers.map((answers) => distance([...answers])), gd: of(gd), newton: of(newton) },
    own: distance([...own]),
  };
}

export function mount(place, app) {
  const input = make("input", { type: "range", id: "depth-layer", min: 0, step: 1 });
  const named = make("output", { class: "number", for: "depth-layer" });
  const sentence = make("p", { id: "depth-sentence", class: "say" });
  const charts = make("div", { class: "charts" });
  const rate = slider({
    label: "Rate c of GD", low: 0.1, high: 1.9, step: 0.1, id: "depth-rate", show: (value) => value.toFixed(1),
    onmove: (value, lasting) => app.update({ panels: { ...app.state.panels, depth: { rate: value } } }, { lasting }),
  });
  const note = make("p", { class: "quiet" }), key = make("p", { class: "keys" });
  place.append(
    make("div", { class: "sliders" }, make("label", { class: "slider" }, make("span", {}, "After layer"), input, named), rate.element),
    sentence, key, charts, note,
  );
  input.addEventListener("input", () => app.update({ layer: Number(input.value) }, { lasting: false }));
  input.addEventListener("change", () => app.update({ layer: Number(input.value) }));

  function follow() {
    const model = openedModel(app);
    place.toggleAttribute("data-empty", !model);
    if (!model) {
      sentence.textContent = "No model here takes this many inputs.";
      charts.replaceChildren();
      key.replaceChildren();
      note.textContent = "";
      return;
    }
    const depth = model.transformer.numLayers, where = situation(app, model);
    const layer = Math.min(app.state.layer ?? depth, depth);
    Object.assign(input, { max: depth, value: layer });
    named.textContent = `${layer} of ${depth}`;
    input.setAttribute("aria-valuetext", layer ? `layer ${layer} of ${depth}` : "the input");
    const kept = Number(app.state.panels.depth?.rate), chosen = kept >= 0.1 && kept <= 1.9 ? kept : RATE;
    rate.set(chosen);
    const found = walk(model, where, chosen, openedRun(app, model));
    sentence.textContent = inWords(model, found, layer, where);
    key.replaceChildren(...[...LINES, LEAST_SQUARES, ...(model.readouts ? [OWN] : [])].map(keyOf));
    charts.replaceChildren(
      ...(model.dim === 1 ? [curves(model, found, layer, where)] : []),
      ...(model.dim <= 2 ? [model.dim === 1 ? slopes(found, layer) : vectors(found, layer)] : []),
      distances(found, layer),
    );
    note.textContent = model.readouts
      ? "Each layer has its own linear read-out, fitted in Python (learner.readouts()) to labels of the training task. GD: w ← w + c (b − Sw)/λ, with S = XᵀX, b = XᵀY and λ the largest eigenvalue of S. Newton: w = Mb, M ← 2M − MSM; with one input its start is the solution. SPD: mean squared distance of predictions at 32 inputs x ~ N(0, I), over d."
      : `${model.name} has no read-outs of its own for each layer, so the read-out of its last layer is used for all. A compiled learner writes its answer in the last layer: see “Watch it run”.`;
  }
  whileOpen(place, app, follow);
}

function inWords(model, { spd, nearest, own }, layer, { n }) {
  const steps = (count) => (count === 1 ? "1 step" : `${count === MOST_STEPS ? "≥ " : ""}${count} steps`);
  const where = layer ? `After layer ${layer} of ${model.transformer.numLayers}` : "At its input";
  const beside = n
    ? ` Nearest to these answers are GD after ${steps(nearest.gd[layer])} and Newton's method after ${steps(nearest.newton[layer])}.` : "";
  const end = model.readouts ? ` Its own answers, not read out linearly, are ${shortNumber(own)} away.` : "";
  return `${where}, a read-out of ${model.name} is ${shortNumber(spd.layers[layer])} from least squares (SPD/d).${beside}${end}`;
}

const LINES = [
  { id: "layers", name: "read-out", color: "var(--color-0)" },
  { id: "gd", name: "GD", color: "var(--color-1)", dash: "5 3" },
  { id: "newton", name: "Newton", color: "var(--color-2)", dash: "2 3" },
];

const LEAST_SQUARES = { name: "least squares", color: "var(--ink)", dash: "6 4" };
const OWN = { name: "its own answers", color: "var(--quiet)", dash: "1 4" };

const keyOf = ({ name, color, dash }) => make("span", { class: "key" },
  draw("svg", { width: 24, height: 8, "aria-hidden": "true" },
    draw("line", { x1: 0, x2: 24, y1: 4, y2: 4, style: `stroke: ${color}`, "stroke-width": 2, "stroke-dasharray": dash })), name);

const figure = (title, svg) => make("figure", {}, make("figcaption", {}, title), svg);

// d = 1: the function after each layer, over the examples.
function curves(model, found, layer, where) {
  const reach = Math.max(3, ...where.x.map(([each]) => Math.abs(each) * 1.1));
  const grid = Array.from({ length: 49 }, (_, k) => [reach * (k / 24 - 1)]);
  const { layers } = askLayers(model, found.run, grid);
  const line = grid.map(([each]) => each * found.ols[0]);
  const top = Math.max(1, ...where.y.map(Math.abs), ...line.map(Math.abs)) * 1.15;
  const { svg, layer: into, x, y } = chart({
    label: `The function after layer ${layer}, and least squares`, xs: [-reach, reach], ys: [-top, top], xLabel: "x", yLabel: "answer",
  });
  const clip = (value) => Math.min(Math.max(value, -top), top);
  const curve = (answers) => path(grid.map(([each], k) => [x(each), y(clip(answers[k]))]));
  layers.forEach((answers, depth) => {
    if (depth !== layer) into.append(draw("path", { d: curve(answers), class: "faint", style: "stroke: var(--color-0)" }));
  });
  into.append(
    draw("path", { d: curve(line), class: "line", style: "stroke: var(--ink)", "stroke-dasharray": "6 4" }),
    draw("path", { d: curve(layers[layer]), class: "line thick", style: "stroke: var(--color-0)" }),
    ...where.x.map(([each], t) => draw("circle", { cx: x(each), cy: y(clip(where.y[t])), r: 3.5, class: "dot" })),
  );
  return figure(`The function after layer ${layer}; faint: after the others`, svg);
}

// d = 1: the slope after every layer or step.
function slopes(found, layer) {
  const all = { layers: found.weights, gd: found.gd, newton: found.newton };
  const values = [...Object.values(all).flat(), found.ols].map(([w]) => w);
  const low = Math.min(0, ...values), high = Math.max(0, ...values), room = 0.1 * (high - low || 1);
  const { svg, layer: into, x, y } = chart({
    label: "The slope after every layer or step", xs: [0, found.weights.length - 1], ys: [low - room, high + room],
    xLabel: "layer or step", yLabel: "implied weight", whole: true,
  });
  into.append(draw("line", { x1: x(0), x2: x(found.weights.length - 1), y1: y(found.ols[0]), y2: y(found.ols[0]), class: "line", style: "stroke: var(--ink)", "stroke-dasharray": "6 4" }));
  for (const { id, color, dash } of LINES) series(into, all[id].map(([w], k) => [x(k), y(w)]), color, dash, id === "layers" ? layer : -1);
  return figure(`The slope: after layer ${layer} it is ${cellNumber(found.weights[layer][0])}, that of least squares ${cellNumber(found.ols[0])}`, svg);
}

// d = 2: the weight vector after every layer or step.
function vectors(found, layer) {
  const all = { layers: found.weights, gd: found.gd, newton: found.newton };
  const points = [...Object.values(all).flat(), found.ols, [0, 0]];
  const range = (axis) => {
    const values = points.map((w) => w[axis]), low = Math.min(...values), high = Math.max(...values);
    const room = 0.12 * (high - low || 1);
    return [low - room, high + room];
  };
  const { svg, layer: into, x, y } = chart({
    label: "The weight vector after every layer or step", xs: range(0), ys: range(1), xLabel: "w₁", yLabel: "w₂",
  });
  for (const { id, color, dash } of LINES) series(into, all[id].map(([a, b]) => [x(a), y(b)]), color, dash, id === "layers" ? layer : -1);
  const [a, b] = [x(found.ols[0]), y(found.ols[1])];
  into.append(draw("path", { d: `M${a - 6} ${b}H${a + 6}M${a} ${b - 6}V${b + 6}`, class: "line", style: "stroke: var(--ink)" }),
    draw("text", { x: a + 8, y: b - 6, class: "tick" }, "OLS"));
  return figure(`The weight vector: after layer ${layer} it is (${found.weights[layer].map(cellNumber).join(", ")})`, svg);
}

function distances({ spd, own }, layer) {
  const values = [...Object.values(spd).flat(), own].filter((each) => each > SMALLEST);
  const low = Math.min(1e-3, ...values) / 2, high = Math.max(1e-2, ...values) * 2;
  const { svg, layer: into, x, y } = chart({
    label: "Distance to least squares after every layer or step", xs: [0, spd.layers.length - 1], ys: [Math.max(low, SMALLEST), high],
    xLabel: "layer or step", yLabel: "SPD / d", logY: true, whole: true,
  });
  for (const { id, color, dash } of LINES) series(into, spd[id].map((each, k) => [x(k), y(each)]), color, dash, id === "layers" ? layer : -1);
  into.append(draw("line", { x1: x(0), x2: x(spd.layers.length - 1), y1: y(own), y2: y(own), class: "line", style: "stroke: var(--quiet)", "stroke-dasharray": "1 4" }));
  return figure("Distance to least squares", svg);
}

function series(into, points, color, dash, marked) {
  into.append(draw("path", { d: path(points), class: "line", style: `stroke: ${color}`, "stroke-dasharray": dash }),
    ...points.map(([cx, cy], k) => draw("circle", { cx, cy, r: k === marked ? 6 : 2.5, style: `fill: ${color}` })));
}
