// Patch by hand: take hidden states from a second dataset and see the answer move.
//
// The second dataset has the same inputs and other labels. A click on layer × token swaps
// its state in; the rest of the learner runs on as usual.

import { chart, path } from "./chart.js";
import { draw, make, signed } from "./dom.js";
import { probes } from "./depth.js";
import { heatmap } from "./heatmap.js";
import { cellNumber, impliedWeights, openedModel, openedRun, runWhole, situation, tokenNames, whileOpen } from "./inside.js";

const AT_ONCE = 20; // milliseconds of work before the page may answer again
const LABELS = 60; // pixels for the names of rows
const COLORED = "Color: how far the answer moves if that state alone is swapped, blue up and orange down; framed are those that are swapped.";

export const DONORS = [
  { id: "opposite", name: "the same inputs, labels −y", labels: ({ y }) => y.map((each) => -each) },
  { id: "twice", name: "the same inputs, labels 2y", labels: ({ y }) => y.map((each) => 2 * each) },
  {
    id: "other", name: "the same inputs, labels of another w",
    labels: ({ x }) => x.map((each) => each.reduce((sum, xi, k) => sum + xi * (k % 2 ? 1.1 : -0.5), 0)),
  },
];

// Return the edit that takes the states of some cells, a set of "layer,token", from a run.
export function swapping(cells, donor, size) {
  return (layer, states) => {
    let edited = null;
    for (const cell of cells) {
      const [at, token] = cell.split(",").map(Number);
      if (at !== layer || (token + 1) * size > states.length) continue;
      edited ??= states.slice();
      edited.set(donor.hidden[layer].subarray(token * size, (token + 1) * size), token * size);
    }
    return edited ?? states;
  };
}

export function mount(place, app) {
  const donors = make("select", { id: "patch-donor" }, DONORS.map(({ id, name }) => make("option", { value: id }, name)));
  const clear = make("button", { type: "button", id: "patch-clear" }, "Swap nothing");
  const sentence = make("p", { id: "patch-sentence", class: "say", role: "status" });
  const told = make("p", { id: "patch-told", class: "quiet" });
  const figures = make("div", { class: "implied" });
  let cells = new Set(saved(app)), shown = null, working = 0;
  const map = heatmap({
    label: "Swap a hidden state: rows are layers, columns are tokens", signed: true, cell: 24,
    onpoint: (r, c) => tell(r, c), onpick: (r, c) => toggle(`${r},${c}`),
  });
  place.append(
    make("div", { class: "watch-bar" }, make("label", {}, "Click a hidden state, layer × token, to take it from a second dataset: ", donors), clear),
    sentence, make("div", { class: "maps" }, make("figure", { class: "effects" }, make("figcaption", {}, COLORED), map.element, told), figures),
  );

  function toggle(cell) {
    if (!cells.delete(cell)) cells.add(cell);
    keep();
  }
  function keep() {
    app.update({ panels: { ...app.state.panels, patch: { cells: [...cells], donor: donors.value } } });
  }
  donors.addEventListener("change", keep);
  clear.addEventListener("click", () => { cells.clear(); keep(); });

  function tell(row, column) {
    if (row === null || !shown) return;
    const answer = shown.single(row, column);
    told.textContent = `${row ? `Layer ${row}` : "The input"}, ${shown.names[column]}: swapped alone, the answer goes from ${signed(shown.intact)} to ${signed(answer)}.`;
  }

  // Compute the effect of every state, a little at a time, and draw what is known.
  function fillIn(waiting, single, drawEffects) {
    const until = performance.now() + AT_ONCE;
    while (waiting.length && performance.now() < until) single(...waiting.shift());
    drawEffects();
    if (waiting.length) working = setTimeout(() => fillIn(waiting, single, drawEffects));
  }

  function follow() {
    const model = openedModel(app);
    if (!model) {
      sentence.textContent = "No model here takes this many inputs.";
      return;
    }
    const { transformer } = model, where = situation(app, model);
    const kept = app.state.panels.patch;
    donors.value = DONORS.some(({ id }) => id === kept?.donor) ? kept.donor : DONORS[0].id;
    const names = tokenNames(where.n), depth = transformer.numLayers;
    const fits = (cell) => {
      const [layer, token] = String(cell).split(",").map(Number);
      return Number.isInteger(layer) && layer >= 0 && layer <= depth
        && Number.isInteger(token) && token >= 0 && token < names.length;
    };
    cells = new Set(saved(app).filter(fits));
    const y = DONORS.find(({ id }) => id === donors.value).labels(where);
    const donor = runWhole(model, { ...where, y }), size = transformer.hidden;
    const patched = (some) => runWhole(model, where, { edit: swapping(some, donor, size) });
    const whole = openedRun(app, model), mended = cells.size ? patched(cells) : whole;
    const intact = whole.output.at(-1), remembered = new Map();
    const single = (r, c) => {
      const cell = `${r},${c}`;
      if (!remembered.has(cell)) remembered.set(cell, patched([cell]).output.at(-1));
      return remembered.get(cell);
    };
    shown = { names, intact, single };
    const rows = Array.from({ length: depth + 1 }, (_, k) => (k ? `layer ${k}` : "input"));
    const given = donor.output.at(-1), marked = cells;
    const side = Math.min(Math.max(Math.floor((place.clientWidth - LABELS) / names.length), 12), names.length > 25 ? 12 : 24);
    const drawEffects = () => map.show({
      values: (r, c) => (remembered.has(`${r},${c}`) ? single(r, c) - intact : 0), rows, columns: names, marked,
      largest: Math.abs(given - intact) || 1, cell: side,
    });
    drawEffects();
    clearTimeout(working);
    if (!app.isMoving) fillIn(rows.flatMap((_, r) => names.map((_, c) => [r, c])), single, drawEffects);
    const moved = mended.output.at(-1);
    const share = (moved - intact) / (given - intact || 1);
    sentence.textContent = cells.size
      ? `With ${cells.size === 1 ? "one state" : `${cells.size} states`} swapped the answer at the query goes from ${signed(intact)} to ${signed(moved)}: ${Math.round(100 * share)} % of the way to ${signed(given)}, the answer for the second dataset.`
      : `Nothing is swapped: the answer at the query is ${signed(intact)}; for the second dataset it is ${signed(given)}.`;
    figures.replaceChildren(...(model.dim <= 2 ? [implied(model, { intact: whole, "second dataset": donor, patched: mended })] : []));
  }
  whileOpen(place, app, follow);
}

const saved = (app) => {
  const cells = app.state.panels.patch?.cells;
  return Array.isArray(cells) ? cells.map(String).slice(0, 1000) : [];
};

// The weights that the learner implies: intact, for the second dataset, and patched. The
// states of the examples are swapped; one of the query changes only its own answer.
function implied({ transformer, dim }, runs) {
  const queries = probes(dim);
  const weights = (run) => impliedWeights(queries, [...transformer.ask(run, queries, run.time - 1)]);
  const found = Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, weights(run)]));
  const pairs = Object.values(found).map((w) => [w[0], w[1] ?? 0]);
  const reach = 1.2 * Math.max(0.5, ...pairs.flat().map(Math.abs));
  const one = dim === 1; // then each weight has a line of its own
  const { svg, layer, x, y: up } = chart({
    height: one ? 110 : 260, label: "Implied weights", xs: [-reach, reach], ys: one ? [-3, 1] : [-reach, reach],
    xLabel: one ? "implied weight" : "w₁", yLabel: one ? "" : "w₂", bare: one,
  });
  const colors = { intact: "var(--color-0)", "second dataset": "var(--color-1)", patched: "var(--color-2)" };
  Object.entries(found).forEach(([name, w], k) => {
    const at = one ? -k : w[1], to = [x(w[0]), up(at)];
    layer.append(draw("path", { d: path([[x(0), up(one ? at : 0)], to]), class: "line", style: `stroke: ${colors[name]}`, "stroke-dasharray": ["", "6 3", "2 3"][k] }),
      draw("circle", { cx: to[0], cy: to[1], r: name === "patched" ? 6 : 4, style: `fill: ${colors[name]}` }));
  });
  const key = Object.entries(found).map(([name, w]) => make("span", { class: "key" },
    make("span", { class: "swatch", style: `background: ${colors[name]}` }), `${name} (${w.map(cellNumber).join(", ")})`));
  return make("figure", {}, make("figcaption", {}, "Implied weights ", key), svg);
}
