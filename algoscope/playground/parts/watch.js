// Watch it run: a transformer that was written by hand, layer by layer, with its program.

import { make } from "./dom.js";
import { subscript, tokenNames, whileOpen } from "./inside.js";
import { loadEmbedded } from "./models.js";
import { registerGrid } from "./register_grid.js";
import { changedColumns, traceModel } from "./trace.js";

const PAUSE = 900; // milliseconds between steps while it plays
const MODES = ["computed", "exact", "difference"];

const small = (value) => (value === 0 ? "0" : value.toExponential(0).replaceAll("-", "−"));

const digits = (value) => String(Number(value.toPrecision(6))).replaceAll("-", "−");

// The constructions that Python prepared, packed, read once; and the page's own compiled models.
let read = null;
function prepared() {
  read ??= JSON.parse(document.getElementById("constructions")?.textContent ?? "[]");
  return read;
}

export function constructionsFor(app) {
  const { length: dim } = app.state.query;
  const own = [...app.models.values()].filter((model) => model.program && model.dim === dim)
    .map((model) => ({ family: model.name, title: `${model.name}, from this page`, dim, parameters: {}, model }));
  return [...prepared().filter((each) => each.dim === dim), ...own];
}

export function mount(place, app) {
  const family = make("select", { id: "watch-family" });
  const chosen = { "α": make("select", { id: "watch-rate" }), "λ": make("select", { id: "watch-penalty" }) };
  const mode = make("select", { id: "watch-mode" }, MODES.map((each) => make("option", {}, each)));
  const scrub = make("input", { type: "range", min: 0, step: 1, value: 0, id: "watch-step", "aria-label": "Step" });
  const button = (id, text, label, onclick) => make("button", { type: "button", id, "aria-label": label, title: label, onclick }, text);
  const play = button("watch-play", "▶ Play", "Play", () => (timer ? stop() : start()));
  const where = make("strong", { id: "watch-where" });
  const told = make("div", { class: "told", id: "watch-told", "aria-live": "polite" });
  const result = make("p", { id: "watch-result", class: "say" });
  const listing = make("ol", { "aria-label": "The program" });
  const edits = make("div", { class: "watch-bar", id: "watch-edits" });
  const grid = registerGrid({ onpoint: (at) => tell(at) });
  const view = make("div", { class: "watch" }, make("div", {}, grid.element, told), make("div", {}, listing));
  const labels = Object.entries(chosen).map(([symbol, select]) => make("label", {}, `${symbol} `, select));
  const bars = [
    make("div", { class: "watch-bar" }, make("label", {}, "Transformer ", family), labels, make("label", {}, "Show ", mode)),
    make("div", { class: "watch-bar", role: "group", "aria-label": "Steps" },
      button("watch-back", "◀", "One step back", () => leap(step - 1)), play,
      button("watch-next", "▶|", "One step on", () => leap(step + 1)), scrub, where),
  ];
  place.append(...bars, result, view, edits);
  const loaded = new Map();
  let step = 0, timer = 0, trace = null, current = null, asked = 0;

  // What is chosen is part of the page's state: { family, α, λ, step }.
  const wish = () => app.state.panels.watch ?? {};
  const keep = (watch) => app.update({ panels: { ...app.state.panels, watch } }, { lasting: !timer });
  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "▶ Play";
  }
  function start() {
    if (!trace) return;
    if (step >= trace.steps.length - 1) go(0);
    timer = setInterval(() => {
      go(step + 1);
      if (!trace || step >= trace.steps.length - 1) stop();
    }, PAUSE);
    play.textContent = "❚❚ Pause";
  }
  function leap(next) {
    stop();
    go(next);
  }
  function go(next) {
    if (!trace) return;
    step = Math.min(Math.max(next, 0), trace.steps.length - 1);
    paint();
    keep({ ...current.parameters, family: current.family, step });
  }
  scrub.addEventListener("input", () => leap(Number(scrub.value)));
  mode.addEventListener("change", () => paint());
  grid.element.addEventListener("keydown", (event) => {
    const next = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: Infinity }[event.key];
    const rows = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if ((next ?? rows) === undefined || !trace) return;
    event.preventDefault();
    if (rows) grid.move(rows, 0);
    else if (event.shiftKey) grid.move(0, Math.sign(next - step));
    else leap(next);
  });

  // Fill the choices with what is prepared for this number of inputs.
  function choices() {
    const all = constructionsFor(app);
    const wanted = wish().family;
    const families = [...new Map(all.map((each) => [each.family, each.title]))];
    family.replaceChildren(...families.map(([id, title]) => make("option", { value: id }, title)));
    if (families.some(([id]) => id === wanted)) family.value = wanted;
    const alike = all.filter((each) => each.family === family.value);
    for (const [symbol, select] of Object.entries(chosen)) {
      const values = [...new Set(alike.map((each) => each.parameters[symbol]).filter((each) => each !== undefined))];
      const before = wish()[symbol];
      select.replaceChildren(...values.map((each) => make("option", { value: each }, String(each))));
      select.parentElement.hidden = !values.length;
      if (values.includes(before)) select.value = before;
      else if (values.length) select.value = values.find((each) => each === alike[0].usual?.[symbol]) ?? values[0];
    }
    return alike.find((each) => Object.entries(each.parameters).every(
      ([symbol, value]) => Number(chosen[symbol].value) === value,
    )) ?? alike[0] ?? null;
  }

  function refuse(reason) {
    stop();
    trace = null;
    view.hidden = true;
    edits.replaceChildren();
    result.textContent = reason;
  }

  async function follow() {
    const turn = ++asked;
    current = choices();
    for (const bar of bars) bar.hidden = !current;
    if (!current) {
      refuse("The constructions are prepared for one and two inputs.");
      return;
    }
    const key = current.model ? null : current.name;
    if (key && !loaded.has(key)) loaded.set(key, await loadEmbedded(current));
    if (turn !== asked) return; // something else was chosen meanwhile
    const model = current.model ?? loaded.get(key), n = Math.min(app.state.x.length, model.maxExamples);
    if (current.whole && n < model.maxExamples) {
      refuse("This one reads one example: add a point.");
      return;
    }
    view.hidden = false;
    const x = [...app.state.x.slice(0, n), app.state.query], y = [...app.state.y.slice(0, n), 0];
    trace = traceModel(model, x, y);
    step = Math.min(Math.max(Math.trunc(Number(wish().step)) || 0, 0), trace.steps.length - 1);
    const left = app.state.x.length - n;
    const note = left > 0 ? ` It reads the first ${n === 1 ? "example" : `${n} examples`} of ${app.state.x.length}.` : "";
    result.textContent = `${current.says ?? ""} Its answer at the query is ${digits(trace.prediction)}; computed exactly it is ${digits(trace.exactPrediction)} (difference ${small(trace.prediction - trace.exactPrediction)}).${note}`;
    list();
    inputs(n);
    paint();
  }
  family.addEventListener("change", () => {
    stop();
    keep({ family: family.value, step: 0 });
  });
  for (const [symbol, select] of Object.entries(chosen)) {
    select.addEventListener("change", () => keep({ ...current.parameters, family: family.value, step, [symbol]: Number(select.value) }));
  }

  function list() {
    const { layout, program } = trace.data;
    listing.replaceChildren(...layout.events.toSorted((a, b) => a.layer - b.layer || a.part.localeCompare(b.part)).map((line) => {
      const out = program.registers[program.events[line.event].out][0];
      const label = layout.labels[line.layer];
      const comment = label.startsWith("layer ") ? "" : `  — ${label}`;
      return make("li", { "data-layer": line.layer }, make("button", { type: "button", onclick: () => leap(line.layer) },
        make("span", { class: "place quiet" }, `${line.layer}. ${line.part}`), make("span", {}, `${out} = ${line.formula}`, make("span", { class: "quiet" }, comment))));
    }));
  }

  function paint() {
    if (!trace) return;
    Object.assign(scrub, { max: trace.steps.length - 1, value: step });
    const { label, layer } = trace.steps[step];
    where.textContent = layer ? `Layer ${layer} of ${trace.steps.length - 1}${label.startsWith("layer ") ? "" : `: ${label}`}` : "The input";
    for (const item of listing.children) {
      const at = Number(item.dataset.layer);
      item.className = at === step ? "now" : at < step ? "done" : "";
      item.firstChild.setAttribute("aria-current", at === step ? "step" : "false");
    }
    const first = listing.querySelector(".now");
    if (first) listing.scrollTop = first.offsetTop - listing.offsetTop - listing.clientHeight / 3;
    grid.show(trace, step, mode.value);
  }

  function tell(at) {
    if (!at) {
      told.replaceChildren(make("p", { class: "quiet" }, "Tokens are columns, rows of the hidden state are lines. Step on with the buttons or the arrow keys ← →; point at a number, or go to it with ↑ ↓ and Shift ← →, to see where it comes from."));
      return;
    }
    const { entry, k, token, name, writer } = at, names = tokenNames((trace.time - 1) / 2);
    const exact = entry.exact[token][k], computed = entry.computed[token][k];
    const looked = writer?.sources.filter((each) => each.weight !== null) ?? [];
    const by = new Map(looked.map((each) => [each.token, each.weight]));
    const isKept = writer && !changedColumns(trace, entry.register).includes(token);
    const unread = entry.counts && !entry.counts.has(token) ? " The prediction does not depend on it." : "";
    told.replaceChildren(
      make("p", {}, make("strong", {}, `${name} at ${names[token]}`), writer ? ` = ${writer.formula}` : " is part of the input"),
      make("p", {}, `exact ${digits(exact)} | computed ${digits(computed)} | difference ${small(computed - exact)}`),
      make("p", { class: "quiet" }, writer
        ? isKept ? `Kept as it was.${unread}` : `Written by the ${writer.part} of layer ${writer.layer}${by.size ? `, head ${writer.head + 1}: ${[...by].map(([t, weight]) => `${names[t]} with ${weight.toFixed(3)}`).join(", ")}` : ""}.${unread}` : unread),
    );
  }

  // Number fields for the examples that it reads; the points above follow.
  function inputs(n) {
    if (edits.contains(document.activeElement)) return;
    const { points } = app.state;
    const field = (label, value, set) => make("label", {}, `${label} `, make("input", {
      type: "number", step: 0.1, value, onchange: (event) => {
        const number = Number(event.target.value);
        if (Number.isFinite(number) && Math.abs(number) <= 100) set(number);
      },
    }));
    const changed = (t, k, value) => {
      const x = points.x.map((row) => [...row]), y = [...points.y];
      if (k === null) y[t] = value;
      else x[t][k] = value;
      app.update({ points: { x, y } });
    };
    edits.replaceChildren(make("span", { class: "quiet" }, "Examples"), ...points.x.slice(0, n).flatMap((row, t) => [
      ...row.map((each, k) => field(`x${subscript(t + 1)}${row.length > 1 ? `[${k + 1}]` : ""}`, each, (value) => changed(t, k, value))),
      field(`y${subscript(t + 1)}`, points.y[t], (value) => changed(t, null, value)),
    ]));
  }

  let known = "";
  whileOpen(place, app, () => {
    const { step: at = 0, ...chosen } = wish();
    const now = JSON.stringify([app.state.x, app.state.y, app.state.query, [...app.models.keys()], chosen]);
    if (now !== known || (trace && at !== step)) follow();
    known = now;
  });
}
