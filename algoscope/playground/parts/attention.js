// Attention and hidden states: every head of a layer as a map over the tokens x₁ y₁ x₂ …,
// and the states that the layer leaves.

import { make } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { cellNumber, openedModel, openedRun, situation, tokenNames, whileOpen } from "./inside.js";

const HINT = "Point at a cell, or go through a map with the arrow keys.";
const LABELS = 40; // pixels for the names of rows

export function mount(place, app) {
  const input = make("input", { type: "range", id: "attention-layer", min: 1, step: 1, value: 1 });
  const named = make("output", { class: "number", for: "attention-layer" });
  const told = make("p", { id: "attention-told", class: "say", role: "status" }, HINT);
  const heads = make("div", { class: "maps" });
  const states = make("figure", {});
  place.append(
    make("label", { class: "slider" }, make("span", {}, "Layer"), input, named),
    make("p", { class: "quiet" }, "A row is the token that looks, a column the token that is looked at. The stronger the color, the more attention; each row adds up to 1, less what goes to an imaginary token in compiled learners."),
    told, heads, states,
  );
  const kept = new Map(); // maps by head, so that the keyboard keeps its place
  const stateMap = heatmap({ label: "Hidden states: a row per token, a column per unit", signed: true, cell: 12, onpoint: (r, c) => tellState(r, c) });
  let shown = null;

  function tellState(row, column) {
    if (row === null || !shown) return;
    const value = shown.run.hidden[shown.layer][row * shown.model.transformer.hidden + column];
    told.textContent = `After layer ${shown.layer}, unit ${column + 1} of ${shown.names[row]} is ${cellNumber(value)}.`;
  }

  function tell(head, row, column) {
    if (row === null || !shown || column > row) return;
    const weight = shown.run.attention[shown.layer - 1][head][row * shown.names.length + column];
    told.textContent = `Layer ${shown.layer}, head ${head + 1}: ${shown.names[row]} attends to ${shown.names[column]} with ${weight.toFixed(3)}.`;
  }

  function mapOf(head) {
    if (!kept.has(head)) kept.set(head, heatmap({ label: `Attention of head ${head + 1}`, onpoint: (r, c) => tell(head, r, c) }));
    return kept.get(head);
  }

  function follow() {
    const model = openedModel(app);
    heads.replaceChildren();
    if (!model) {
      told.textContent = "No model here takes this many inputs.";
      return;
    }
    const { transformer } = model, where = situation(app, model);
    input.max = transformer.numLayers;
    const layer = Math.min(Math.max(Number(input.value), 1), transformer.numLayers);
    named.textContent = `${layer} of ${transformer.numLayers}`;
    const run = openedRun(app, model);
    const names = tokenNames(where.n);
    shown = { model, run, layer, names };
    const room = place.clientWidth, isNarrow = room < 480;
    const cell = names.length > 25 ? 8 : names.length > 13 || isNarrow ? 11 : 15;
    run.attention[layer - 1].forEach((weights, head) => {
      const map = mapOf(head);
      heads.append(make("figure", {}, make("figcaption", {}, `Head ${head + 1}`), map.element));
      map.show({
        values: (r, c) => (c <= r ? weights[r * names.length + c] : null), rows: names, columns: names, largest: 1, cell,
      });
    });
    const units = Array.from({ length: transformer.hidden }, (_, k) => k + 1);
    states.replaceChildren(make("figcaption", {}, `Hidden states after layer ${layer}: a row per token, a column for each of ${units.length} units; blue is positive, orange negative.`), stateMap.element);
    const hidden = run.hidden[layer], largest = typicalSize(hidden);
    const fitting = Math.floor((room - LABELS) / units.length);
    stateMap.show({
      values: (r, c) => hidden[r * transformer.hidden + c], rows: names, columns: units, largest, bare: true, cell: Math.min(Math.max(fitting, 9), names.length > 25 ? 9 : 15),
    });
  }
  input.addEventListener("input", follow);
  whileOpen(place, app, follow);
}

// A size that few units exceed: compiled learners hold some very large numbers.
function typicalSize(hidden) {
  const sizes = Float64Array.from(hidden, Math.abs).sort();
  return sizes[Math.floor(0.95 * (sizes.length - 1))] || sizes.at(-1);
}
