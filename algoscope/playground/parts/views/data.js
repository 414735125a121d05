// The data: how many inputs, presets, the examples as a table, and "Break it".

import { PRESETS, UnreadableTable, asTable, drawTask, readTable } from "../datasets.js";
import { make, shortNumber, slider } from "../dom.js";
import { isTextbook } from "../learners.js";
import { NO_SHIFT } from "../state.js";
import { unshifted } from "../shifts.js";

let seed = 1; // of the next draw

export function mountData(place, app) {
  place.append(make("div", {}, inputs(app), presets(app), table(app), paste(app)), breakIt(app));
}

// Let the user choose the number of inputs among those of the models.
function inputs(app) {
  const row = make("div", { class: "chips", role: "radiogroup", "aria-label": "Number of inputs" });
  const follow = () => {
    const dims = [...new Set([...app.models.values()].map(({ dim }) => dim))].sort((a, b) => a - b);
    row.replaceChildren(make("span", { class: "quiet" }, "Inputs"), ...dims.map((dim) => make("label", {},
      make("input", {
        type: "radio", name: "inputs", value: dim, checked: dim === app.dim, onchange: () => chooseDim(app, dim),
      }), make("span", {}, `d = ${dim}`))));
  };
  let known = "";
  app.subscribe(() => {
    const now = `${app.dim} ${[...app.models.keys()]}`;
    if (now !== known) follow();
    known = now;
  });
  follow();
  return row;
}

// Go to the like learner for this number of inputs: the same kind, the same algorithm.
function chooseDim(app, dim) {
  const id = app.state.model;
  if (isTextbook(id)) {
    app.update(app.pointsFor(dim));
    return;
  }
  const alike = [...app.models.values()].filter((model) => model.dim === dim);
  const twin = app.models.get(id.replace(/-d\d+/, `-d${dim}`));
  const next = alike.find((model) => model === twin)
    ?? alike.find((model) => model.kind === app.model.kind) ?? alike[0];
  app.choose(next.name);
}

function presets(app) {
  const row = make("div", { class: "buttons", role: "group", "aria-label": "Examples to start from" });
  for (const { id, name, make: points } of PRESETS) {
    const use = () => app.update({ points: points(app.dim), shift: { ...NO_SHIFT } });
    row.append(make("button", { type: "button", "data-preset": id, onclick: use }, name));
  }
  const draw = () => {
    const count = Math.max(app.state.x.length, 1);
    app.update({ points: drawTask(app.dim, count, seed++), shift: { ...NO_SHIFT } });
  };
  row.append(make("button", { type: "button", id: "draw", title: "Draw examples of the training task", onclick: draw }, "Random"));
  app.subscribe(() => hidePresets());
  const hidePresets = () => row.querySelectorAll("[data-preset]").forEach((each) => { each.hidden = app.dim > 2; });
  hidePresets();
  return row;
}

// Change the examples by a function of copies of x and y.
function edit(app, change) {
  const x = app.state.points.x.map((each) => [...each]), y = [...app.state.points.y];
  change(x, y);
  app.update({ points: { x, y } });
}

export function removeExample(app, index) {
  edit(app, (x, y) => { x.splice(index, 1); y.splice(index, 1); });
}

export function moveExample(app, index, by) {
  const to = index + by;
  if (to < 0 || to >= app.state.x.length) return index;
  edit(app, (x, y) => {
    x.splice(to, 0, ...x.splice(index, 1));
    y.splice(to, 0, ...y.splice(index, 1));
  });
  return to;
}

export function addExample(app, x, y) {
  const count = app.state.x.length;
  if (count >= app.mostExamples) {
    app.say(`This learner takes at most ${app.mostExamples} examples.`);
    return;
  }
  const base = unshifted(x, y, count, count + 1, app.state.shift);
  edit(app, (xs, ys) => { xs.push(base.x); ys.push(base.y); });
}

// Put an example, as the learner sees it, to another place.
export function placeExample(app, index, x, y, lasting) {
  const base = unshifted(x, y, index, app.state.x.length, app.state.shift);
  const points = { x: app.state.points.x.slice(), y: app.state.points.y.slice() };
  points.x[index] = base.x;
  points.y[index] = base.y;
  app.update({ points }, { lasting });
}

const cell = (value) => String(Math.round(value * 1000) / 1000);

function table(app) {
  const body = make("tbody");
  const head = make("tr");
  const add = make("button", { type: "button", id: "add" }, "Add an example");
  add.addEventListener("click", () => {
    const { x, y } = drawTask(app.dim, 1, 100 + seed++);
    addExample(app, x[0], y[0]);
  });
  const box = make("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table of examples" },
    make("table", { id: "examples", "aria-label": "Examples" }, make("thead", {}, head), body));
  let shape = "";
  const follow = () => {
    const { x, y } = app.state;
    const now = `${x.length} ${app.dim}`;
    if (now !== shape) {
      shape = now;
      const unseen = (name) => make("span", { class: "unseen" }, name);
      head.replaceChildren(...[unseen("Example"), ...columns(app.dim), "y", unseen("Order")].map((name) => make("th", { scope: "col" }, name)));
      body.replaceChildren(...x.map((_, index) => exampleRow(app, index)));
    }
    x.forEach((each, index) => {
      const row = body.children[index];
      [...(app.dim <= 2 ? each : []), y[index]].forEach((value, place) => {
        const input = row.querySelectorAll("input")[place];
        if (document.activeElement !== input) input.value = cell(value);
      });
    });
  };
  app.subscribe(follow);
  follow();
  return make("div", {}, box, add);
}

const columns = (dim) => (dim === 1 ? ["x"] : dim === 2 ? ["x₁", "x₂"] : []);

function exampleRow(app, index) {
  const number = index + 1;
  const enter = (place, event) => {
    const value = Number(event.target.value);
    if (event.target.value.trim() === "" || !Number.isFinite(value) || Math.abs(value) > 1e6) {
      app.say(`Example ${number} needs a number.`);
      return;
    }
    const x = [...app.state.x[index]];
    const isLabel = place === (app.dim <= 2 ? app.dim : 0);
    if (!isLabel) x[place] = value;
    placeExample(app, index, x, isLabel ? value : app.state.y[index], true);
  };
  const names = [...columns(app.dim), "y"];
  const action = (label, text, run, disabled = false) => make("button", {
    type: "button", class: "small", "aria-label": `${label} ${number}`, disabled, onclick: run,
  }, text);
  const last = app.state.x.length - 1;
  return make("tr", {},
    make("th", { scope: "row" }, String(number)),
    names.map((name, place) => make("td", {}, make("input", {
      type: "number", step: 0.1, "aria-label": `${name} of example ${number}`,
      onchange: (event) => enter(place, event),
    }))),
    make("td", { class: "actions" },
      action("Move up example", "↑", () => moveExample(app, index, -1), index === 0),
      action("Move down example", "↓", () => moveExample(app, index, 1), index === last),
      action("Delete example", "×", () => removeExample(app, index))));
}

// Use the text of a table; says what is wrong with it.
export function useTable(app, text) {
  try {
    const points = readTable(text, app.mostExamples);
    const dim = points.x[0].length;
    if (dim !== app.dim) {
      const model = [...app.models.values()].find((each) => each.dim === dim);
      if (!model && !isTextbook(app.state.model)) {
        throw new UnreadableTable(`The table has ${dim} inputs; no learner of this page takes as many.`);
      }
      if (model) app.choose(model.name);
      else app.update(app.pointsFor(dim));
    }
    app.update({ points, shift: { ...NO_SHIFT } });
    app.say(`${points.y.length} examples are read.`);
  } catch (error) {
    if (!(error instanceof UnreadableTable)) throw error;
    app.say(error.message);
  }
}

function paste(app) {
  const area = make("textarea", { rows: 5, id: "table-text", "aria-label": "Examples as a table", placeholder: "x,y\n0.5,1\n-1,-2", spellcheck: "false" });
  const use = make("button", { type: "button", id: "use-table", onclick: () => useTable(app, area.value) }, "Use this table");
  const details = make("details", { class: "plain", id: "paste" },
    make("summary", {}, "Paste a table"),
    make("p", { class: "quiet" }, "One example per line, y last. You can also drop a CSV file on the page."), area, use);
  details.addEventListener("toggle", () => { if (details.open) area.value = asTable(app.state); });
  return details;
}

const SLIDERS = [
  { name: "x", label: "Scale inputs", low: 0.1, high: 10, log: true, show: (v) => `× ${shortNumber(v)}` },
  { name: "w", label: "Scale weights", low: 0.1, high: 10, log: true, show: (v) => `× ${shortNumber(v)}` },
  { name: "rotate", label: "Rotate inputs", low: -180, high: 180, step: 5, show: (v) => `${v}°`, only: 2 },
  { name: "outlier", label: "Outlier", low: -10, high: 10, step: 0.25, show: (v) => String(v).replace("-", "−") },
  { name: "noise", label: "Noise", low: 0, high: 3, step: 0.05, show: (v) => shortNumber(v) },
];

function breakIt(app) {
  const all = SLIDERS.map((each) => ({
    ...each,
    ...slider({
      ...each, id: `shift-${each.name}`,
      onmove: (value, lasting) => app.update({ shift: { ...app.state.shift, [each.name]: value } }, { lasting }),
    }),
  }));
  const reset = make("button", {
    type: "button", id: "unbreak", onclick: () => app.update({ shift: { ...NO_SHIFT } }),
  }, "Reset");
  const follow = () => {
    for (const { name, set, element, only } of all) {
      set(app.state.shift[name]);
      element.hidden = Boolean(only) && only !== app.dim;
    }
    reset.disabled = Object.keys(NO_SHIFT).every((name) => app.state.shift[name] === NO_SHIFT[name]);
  };
  app.subscribe(follow);
  follow();
  return make("fieldset", { id: "break" }, make("legend", {}, "Break it"),
    ...all.map(({ element }) => element), reset);
}
