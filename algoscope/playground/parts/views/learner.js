// The learner: which one, its function drawn over the data, and the layers to stop after.

import { make, signed, swatch } from "../dom.js";
import { learnersBeside, shortNameOf, toggleShown } from "../learners.js";
import { TEXTBOOK } from "../predictors.js";
import { mountPlot } from "./plot.js";

export function mountLearner(place, app) {
  const plot = make("div", { class: "plot" });
  const asked = make("p", { id: "asked" }), hint = make("p", { class: "quiet", id: "hint" });
  place.append(choice(app), make("div", { class: "stage" }, strip(app), plot), asked, hint);
  mountPlot(plot, app);
  const follow = () => {
    asked.replaceChildren(...answers(app));
    hint.textContent = app.dim <= 2
      ? "Drag a point to move it, press beside the points to add one, drag the diamond to ask elsewhere."
      : "A cut through the function: the first input varies, the others are those of the query. Drag the diamond to ask elsewhere.";
  };
  app.subscribe(follow);
  follow();
}

// Radio buttons: trained, compiled and textbook learners for this number of inputs.
function choice(app) {
  const box = make("div", { id: "choice", role: "radiogroup", "aria-label": "Learner" });
  const option = (id, text) => make("label", {}, make("input", {
    type: "radio", name: "learner", value: id, checked: app.state.model === id, onchange: () => app.choose(id),
  }), make("span", {}, text));
  const row = (title, options) => (options.length
    ? make("div", { class: "chips" }, make("span", { class: "quiet" }, title), options) : null);
  let known = "";
  const follow = () => {
    const now = JSON.stringify([app.dim, app.state.model, [...app.models.keys()], app.state.shown]);
    if (now === known) return;
    const had = box.contains(document.activeElement) ? document.activeElement : null;
    known = now;
    const here = [...app.models.values()].filter(({ dim }) => dim === app.dim);
    const of = (kind) => here.filter((model) => model.kind === kind)
      .map((model) => option(model.name, model.name));
    const beside = here.filter(({ name }) => name !== app.state.model).map(({ name, kind }) => (
      make("label", {}, make("input", {
        type: "checkbox", name: "beside", value: name, checked: app.state.shown.includes(name),
        onchange: () => toggleShown(app, name),
      }), make("span", { class: `of-${kind}` }, name))));
    const rows = [row("Trained", of("trained")), row("Compiled", of("compiled")),
      row("Textbook", TEXTBOOK.map(({ id, short }) => option(id, short))), row("Compare", beside)];
    box.replaceChildren(...rows.filter(Boolean));
    const again = [...box.querySelectorAll("input")]
      .find((each) => each.name === had?.name && each.value === had?.value);
    if (had) (again ?? box.querySelector("input:checked"))?.focus();
  };
  app.subscribe(follow);
  follow();
  return box;
}

// The strip of layers: where a model has read-outs, its function after each layer.
function strip(app) {
  const box = make("div", { id: "strip", role: "radiogroup", "aria-label": "Stop after layer" });
  let known = "";
  const follow = () => {
    const { model } = app;
    box.hidden = !model?.readouts;
    const now = model?.readouts ? `${model.name} ${app.state.layer}` : "";
    if (now === known || !now) return;
    const had = box.contains(document.activeElement);
    known = now;
    const option = (layer, text, label) => make("label", { title: label }, make("input", {
      type: "radio", name: "layer", "aria-label": label, checked: app.state.layer === layer,
      onchange: () => app.update({ layer }),
    }), make("span", {}, text));
    const depth = model.readouts.weights.length;
    const layers = Array.from({ length: depth }, (_, layer) => option(layer, layer ? String(layer) : "in",
      layer ? `Stop after layer ${layer}` : "Stop before the first layer"));
    box.replaceChildren(make("span", { class: "quiet" }, "Layer"), option(null, "all", "All layers"), ...layers.reverse());
    if (had) box.querySelector("input:checked")?.focus();
  };
  app.subscribe(follow);
  follow();
  return box;
}

// What the learner and those drawn beside it answer at the query, and the key of the plot.
function answers(app) {
  const { state } = app;
  if (app.learner.problem) return [];
  const at = state.query.map(signed).join(", ");
  const own = signed(Number(app.learner.ask([state.query])[0]));
  const key = (kind, name, answer) => make("span", { class: "key" }, swatch(kind), name, " ", make("span", { class: "number" }, answer));
  const others = learnersBeside(app).map(({ id, kind, learner }) => (
    key(`beside of-${kind}`, shortNameOf(id), signed(learner.ask([state.query])[0]))));
  const where = app.dim === 1 ? `x = ${at}` : app.dim === 2 ? `x = (${at})` : "the query";
  return [make("span", { class: "quiet" }, `At ${where} `), key("own", make("strong", {}, shortNameOf(state.model)), make("strong", {}, own)), ...others];
}
