// The application: models, state and the views that listen to it.

import { PANELS } from "./panels.js";
import { forward, loadEmbedded } from "./models.js";
import { textbookPrefixes } from "./predictors.js";
import { encode } from "./transformer.js";
import { History, decodeState, defaultState, encodeState } from "./state.js";

export class App {
  constructor(models) {
    this.models = new Map(models.map((model) => [model.name, model]));
    this.listeners = new Set();
    const first = models[0];
    const x = [0.6, -1.1, 1.5, -0.4, 0.9].map((each) => [each]);
    this.state = defaultState(first.name, { x, y: x.map(([each]) => 1.2 * each) });
    this.#derive();
    this.history = new History(encodeState(this.state));
  }

  get model() {
    return this.models.get(this.state.model) ?? null;
  }

  update(changes, { lasting = true } = {}) {
    Object.assign(this.state, changes);
    this.#derive();
    if (lasting) this.history.add(encodeState(this.state));
    for (const listener of this.listeners) listener(this.state);
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
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

  #derive() {
    this.state.x = this.state.points.x;
    this.state.y = this.state.points.y;
  }
}

function mountPanels(app, place) {
  for (const { id, title, module } of PANELS) {
    const details = document.createElement("details");
    details.id = id;
    const summary = document.createElement("summary");
    summary.textContent = title;
    const body = document.createElement("div");
    body.className = "panel";
    details.append(summary, body);
    details.addEventListener("toggle", () => {
      if (details.open && !body.childElementCount) module.mount(body, app);
    });
    place.append(details);
  }
}

async function start() {
  const payload = JSON.parse(document.getElementById("models").textContent);
  const app = new App(await Promise.all(payload.map(loadEmbedded)));
  mountPanels(app, document.getElementById("panels"));
  return app;
}

const ready = start();
window.algoscope = {
  ready,
  encode,
  textbookPrefixes,
  predictPrefixes: async (name, x, y) => (await ready).predictPrefixes(name, x, y),
};
