// The state of the page, its form in the address (#…), and undo.
//
// points    { x: [[…], …], y: […] }: the examples as the user placed them
// query     […]: the input that is asked about
// model     the learner: the name of a model, or the id of a textbook predictor
// layer     null for the whole learner, or ℓ to stop after that layer
// shown     the learners that are drawn beside it: ids, or names of models
// parameter { ridge, gd, sgd, knn }
// shift     { x, w, rotate, outlier, noise }: how "Break it" changes the examples
// tour      null, or the number of the step
// open      ids of the panels that are open
// panels    { id: small JSON values } that panels keep for themselves

import { TEXTBOOK } from "./predictors.js";

export const NO_SHIFT = { x: 1, w: 1, rotate: 0, outlier: 0, noise: 0 };
const LIMITS = { x: [0.1, 10], w: [0.1, 10], rotate: [-180, 180], outlier: [-10, 10], noise: [0, 3] };
const MOST_DIM = 64, MOST_CHARACTERS = 100_000, MOST_NESTING = 4;
export const MOST_EXAMPLES = 200;
export const LARGEST = 1e6;

export const usualParameters = () => Object.fromEntries(
  TEXTBOOK.filter((each) => each.parameter).map((each) => [each.id, each.parameter.usual]),
);

// The query to start with: away from the examples of the presets.
export function firstQuery(dim) {
  return dim === 1 ? [2.2] : dim === 2 ? [1.8, -1] : new Array(dim).fill(0.5);
}

export function defaultState(model, points) {
  return {
    points, query: firstQuery(points.x[0].length), model, layer: null,
    shown: ["ols", "sgd", "knn"], parameter: usualParameters(), shift: { ...NO_SHIFT },
    tour: null, open: [], panels: {},
  };
}

const short = (number) => String(Number(number.toPrecision(6)));
const row = (numbers) => numbers.map(short).join(",");

// Return the state as text for the address; fields with usual values are left out.
export function encodeState(state) {
  const fields = new URLSearchParams();
  fields.set("model", state.model);
  fields.set("x", state.points.x.map(row).join(";"));
  fields.set("y", row(state.points.y));
  fields.set("query", row(state.query));
  fields.set("shown", state.shown.map(encodeURIComponent).join(","));
  if (state.layer !== null) fields.set("layer", String(state.layer));
  for (const [id, value] of Object.entries(usualParameters())) {
    if (state.parameter[id] !== value) fields.set(id, short(state.parameter[id]));
  }
  for (const [name, value] of Object.entries(NO_SHIFT)) {
    if (state.shift[name] !== value) fields.set(`shift.${name}`, short(state.shift[name]));
  }
  if (state.tour !== null) fields.set("tour", String(state.tour + 1));
  if (state.open.length) fields.set("open", state.open.join(","));
  if (Object.keys(state.panels).length) fields.set("panels", JSON.stringify(state.panels));
  // Readable in the address: these need no escape in a fragment.
  return fields.toString().replaceAll("%2C", ",").replaceAll("%3B", ";");
}

const isNumber = (value) => Number.isFinite(value) && Math.abs(value) <= LARGEST;
const within = (value, [low, high]) => Math.min(Math.max(value, low), high);
const list = (text) => (text ? text.split(",") : []);

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

// Whether values are nested so little that they can be written again.
const isShallow = (value, most = MOST_NESTING) => value === null || typeof value !== "object"
  || (most > 0 && Object.values(value).every((each) => isShallow(each, most - 1)));

function numbers(text) {
  const found = list(text).map((each) => (each.trim() === "" ? NaN : Number(each)));
  return found.every(isNumber) ? found : null;
}

// Return the state that an address holds, or null where it holds none. Whatever cannot
// be read is left as it is in `usual`; `dimOf(model)` says how many inputs a model has,
// 0 for any number, and null for an unknown one.
export function decodeState(text, usual, dimOf) {
  if (!text || text.length > MOST_CHARACTERS) return null;
  const fields = new URLSearchParams(text);
  const state = structuredClone(usual);
  const model = fields.get("model");
  if (model === null || dimOf(model) === null) return null;
  state.model = model;
  const x = (fields.get("x") ?? "").split(";").filter(Boolean).map(numbers);
  const y = numbers(fields.get("y") ?? "");
  const dim = dimOf(model) || x[0]?.length;
  const fits = x.every((each) => each && each.length === dim) && dim <= MOST_DIM;
  if (!fits || y === null || y.length !== x.length || x.length > MOST_EXAMPLES) return null;
  state.points = { x, y };
  const query = numbers(fields.get("query") ?? "");
  state.query = query?.length === dim ? query : firstQuery(dim);
  const isKnown = (id) => dimOf(id) === 0 || dimOf(id) === dim;
  state.shown = list(fields.get("shown")).map(decoded).filter(isKnown);
  const layer = Number(fields.get("layer") ?? NaN);
  state.layer = Number.isInteger(layer) && layer >= 0 && layer <= 1000 ? layer : null;
  for (const { id, parameter } of TEXTBOOK) {
    const value = Number(fields.get(id) ?? NaN);
    if (parameter && isNumber(value)) {
      const bounded = within(value, [parameter.low, parameter.high]);
      state.parameter[id] = parameter.whole ? Math.round(bounded) : bounded;
    }
  }
  for (const name of Object.keys(NO_SHIFT)) {
    const value = Number(fields.get(`shift.${name}`) ?? NaN);
    state.shift[name] = isNumber(value) ? within(value, LIMITS[name]) : NO_SHIFT[name];
  }
  const tour = Number(fields.get("tour") ?? NaN);
  state.tour = Number.isInteger(tour) && tour >= 1 && tour <= 6 ? tour - 1 : null;
  state.open = list(fields.get("open")).slice(0, 20);
  try {
    const panels = JSON.parse(fields.get("panels") ?? "{}");
    state.panels = panels && typeof panels === "object" && !Array.isArray(panels) && isShallow(panels) ? panels : {};
  } catch {
    state.panels = {};
  }
  return state;
}

// What was done, as texts of states, for undo and redo.
export class History {
  constructor(first) {
    this.done = [first];
    this.undone = [];
  }

  add(text) {
    if (text === this.done.at(-1)) return;
    this.done.push(text);
    if (this.done.length > 200) this.done.shift();
    this.undone = [];
  }

  get canUndo() {
    return this.done.length > 1;
  }

  get canRedo() {
    return this.undone.length > 0;
  }

  undo() {
    if (this.canUndo) this.undone.push(this.done.pop());
    return this.done.at(-1);
  }

  redo() {
    if (this.canRedo) this.done.push(this.undone.pop());
    return this.done.at(-1);
  }
}
