// The application: models, state, and the views that listen to it.

import { PRESETS, drawTask } from "./datasets.js";
import { distances } from "./distances.js";
import { learn } from "./learners.js";
import { forward, freeName, loadEmbedded } from "./models.js";
import { textbook, textbookPrefixes } from "./predictors.js";
import { mountPanels, mountScreen } from "./screen.js";
import { shifted } from "./shifts.js";
import { History, MOST_EXAMPLES, decodeState, defaultState, encodeState, firstQuery } from "./state.js";
import { encode } from "./transformer.js";

const MOST_TEXTBOOK_EXAMPLES = 40;

// Examples to start from: the line, or for many inputs a draw of the training task.
function firstPoints(dim) {
  return dim <= 2 ? PRESETS[0].make(dim) : drawTask(dim, Math.min(2 * dim + 4, 20), dim);
}

// The parameter that a compiled transformer was written for, so that the textbook
// predictor of the same name is compared at the same one.
function writtenParameter(model) {
  const { algorithm, parameters } = model?.config.construction ?? {};
  const value = algorithm === "ridge" ? parameters?.penalty : parameters?.learning_rate;
  const known = textbook(algorithm)?.parameter;
  const fits = known && typeof value === "number" && value >= known.low && value <= known.high;
  return fits ? { [algorithm]: value } : {};
}

export class App {
  constructor(models) {
    this.models = new Map();
    for (const model of models) { // none may be taken for a textbook predictor
      const name = textbook(model.name) ? freeName(model.name, (each) => this.dimOf(each) !== null) : model.name;
      this.models.set(name, { ...model, name });
    }
    this.listeners = new Set();
    this.kept = {}; // what was computed for the present state
    this.remembered = new Map(); // the examples of each number of inputs
    this.usual = defaultState(models[0].name, firstPoints(models[0].dim));
    this.state = decodeState(location.hash.slice(1), this.usual, (id) => this.dimOf(id))
      ?? structuredClone(this.usual);
    this.derive();
    this.history = new History(encodeState(this.state));
  }

  // The chosen model, or null where a textbook predictor is chosen.
  get model() {
    return this.models.get(this.state.model) ?? null;
  }

  get dim() {
    return this.state.query.length;
  }

  // The chosen learner on the examples: { ask } or { problem }.
  get learner() {
    this.kept.learner ??= learn(this, this.state.model, this.state.x, this.state.y, { layer: this.state.layer });
    return this.kept.learner;
  }

  // { found, size }: how far the learner is from each textbook predictor.
  get distances() {
    if (this.learner.problem) return null;
    this.kept.distances ??= distances(this, this.learner);
    return this.kept.distances;
  }

  // The most examples that the chosen learner takes.
  get mostExamples() {
    return Math.min(this.model?.maxExamples ?? MOST_TEXTBOOK_EXAMPLES, MOST_EXAMPLES);
  }

  // How many inputs a learner has; 0 for any number, null for an unknown one.
  dimOf(id) {
    return this.models.get(id)?.dim ?? (textbook(id) ? 0 : null);
  }

  update(changes, { lasting = true } = {}) {
    Object.assign(this.state, changes);
    this.isMoving = !lasting;
    this.derive();
    if (lasting) {
      const text = encodeState(this.state);
      this.history.add(text);
      this.show(text);
    }
    this.tell();
  }

  tell() {
    for (const listener of this.listeners) listener(this.state);
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // Choose a learner; one with another number of inputs brings examples of that kind.
  choose(id) {
    const dim = this.dimOf(id) || this.dim;
    const parameter = { ...this.state.parameter, ...writtenParameter(this.models.get(id)) };
    this.update({ model: id, layer: null, parameter, ...this.pointsFor(dim) });
  }

  pointsFor(dim) {
    if (dim === this.dim) return {};
    this.remembered.set(this.dim, { points: this.state.points, query: this.state.query });
    return this.remembered.get(dim) ?? { points: firstPoints(dim), query: firstQuery(dim) };
  }

  undo() {
    this.restore(this.history.undo());
  }

  redo() {
    this.restore(this.history.redo());
  }

  // Take the state from a text of the address; returns whether it held one.
  restore(text) {
    const state = decodeState(text, this.usual, (id) => this.dimOf(id));
    if (!state) return false;
    this.state = state;
    this.isMoving = false;
    this.derive();
    this.show(encodeState(state));
    this.tell();
    return true;
  }

  addModel(model) {
    this.models.set(model.name, model);
    this.choose(model.name);
  }

  forward(name, x, y, options) {
    return forward(this.models.get(name), x, y, options);
  }

  predictPrefixes(name, x, y) {
    return Array.from(this.forward(name, x, y).predictions);
  }

  say(sentence) {
    document.getElementById("status").textContent = sentence;
  }

  // Write the state to the address, where the browser permits it (not in all frames).
  show(text) {
    try {
      history.replaceState(null, "", `#${text}`);
    } catch { /* a frame without an address: undo works, links do not */ }
  }

  // Compute the examples that the learner sees, and forget what depended on others.
  derive() {
    const { state } = this;
    Object.assign(state, shifted(state.points, state.shift));
    const { x, y, model, layer, shown, parameter, shift } = state;
    const learned = JSON.stringify([x, y, model, layer, shown, parameter, shift, this.models.size]);
    if (learned !== this.learned) this.kept = {};
    this.learned = learned;
    this.kept.opened = null; // it has the query in it
  }
}

async function start() {
  const payload = JSON.parse(document.getElementById("models").textContent);
  const app = new App(await Promise.all(payload.map(loadEmbedded)));
  mountScreen(app);
  mountPanels(app, document.getElementById("panels"));
  addEventListener("hashchange", () => {
    const text = location.hash.slice(1);
    if (text !== encodeState(app.state) && app.restore(text)) app.history.add(text);
  });
  return app;
}

const ready = start();
window.algoscope = {
  ready,
  encode,
  textbookPrefixes,
  predictPrefixes: async (name, x, y) => (await ready).predictPrefixes(name, x, y),
};
