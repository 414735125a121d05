// The guided tour: six steps, each a state of the page and a few sentences about it.

import { PRESETS } from "../datasets.js";
import { make } from "../dom.js";
import { NO_SHIFT, firstQuery, usualParameters } from "../state.js";

// `wants` names learners in order of preference; the first that the page has is chosen.
const STEPS = [
  {
    title: "What is in-context learning?",
    text: "The numbered points are the input of a transformer, one token for each x and each y. Its weights stay "
      + "fixed; yet the curve that it answers goes through the points. Drag one: the learner learns anew, in one pass.",
    wants: ["linear-d1"], dim: 1, shown: [],
  },
  {
    title: "Which algorithm is it?",
    text: "Least squares, SGD and nearest neighbors are drawn beside it. The sentence on top says which of them it "
      + "answers like. On a line it is least squares, though nobody programmed that.",
    wants: ["linear-d1"], dim: 1, shown: ["ols", "sgd", "knn"],
  },
  {
    title: "Where does it break?",
    text: "Inputs five times as large as in training: least squares does not mind, the transformer does. The shaded band is what "
      + "it has seen. Move the sliders under “Break it” to find the edge.",
    wants: ["linear-d1"], dim: 1, shown: ["ols"], shift: { x: 5 },
  },
  {
    title: "SGD, written into weights",
    text: "The paper proves that transformers can run SGD. This one was not trained: a compiler wrote its weights. It is on top "
      + "of SGD to many digits. Change the order of the examples in the table: SGD depends on it, least squares does not. "
      + "“Watch it run”, open below, shows each step.",
    wants: ["sgd-d1"], dim: 1, shown: ["ols", "sgd"], open: ["watch"], panels: { watch: { family: "sgd", step: 3 } },
  },
  {
    title: "What do the layers do?",
    text: "With two inputs the function is a field, and its weights an arrow. Press the steps of the strip beside the plot: the arrow "
      + "read out of each layer walks toward least squares. “Depth”, open below, sets it beside gradient descent and Newton's method.",
    wants: ["linear-d2"], dim: 2, shown: ["ols", "gd"], open: ["depth"],
  },
  {
    title: "Where to go on",
    text: "Use your own data: paste a table. Use your own model: drop its config.json and model.safetensors on this page. Copy the link "
      + "to share what you see. The commands algoscope identify, probe and patch measure the same with intervals.",
    wants: ["linear-d1"], dim: 1, shown: ["ols", "ridge", "sgd", "knn"], preset: "noise",
  },
];

function enter(app, index) {
  const { wants, dim, shown, shift = {}, preset = "line", open = [], panels = {} } = STEPS[index];
  const model = wants.find((name) => app.models.has(name))
    ?? [...app.models.values()].find((each) => each.dim === dim)?.name ?? "ols";
  app.update({
    tour: index, model, shown, open, panels, layer: null, parameter: usualParameters(), shift: { ...NO_SHIFT, ...shift },
    points: PRESETS.find(({ id }) => id === preset).make(dim),
    query: firstQuery(dim),
  });
}

export function tourButton(app) {
  return make("button", { type: "button", id: "tour-start", class: "primary", onclick: () => enter(app, 0) }, "Tour");
}

export function mountTour(app) {
  const title = make("h2", { id: "tour-title", tabindex: -1 }), text = make("p"), count = make("span", { class: "quiet" });
  const go = (by) => {
    enter(app, app.state.tour + by);
    title.focus();
  };
  const back = make("button", { type: "button", id: "tour-back", onclick: () => go(-1) }, "Back");
  const next = make("button", { type: "button", id: "tour-next", class: "primary", onclick: () => go(1) }, "Next");
  const close = make("button", { type: "button", id: "tour-close", onclick: () => app.update({ tour: null }) }, "End the tour");
  const card = make("aside", { id: "tour", "aria-labelledby": "tour-title", hidden: true },
    make("div", {}, title, text), make("div", { class: "toolbar" }, count, back, next, close));
  document.getElementById("sentence").after(card);
  const follow = () => {
    const step = app.state.tour;
    card.hidden = step === null;
    if (step === null) return;
    title.textContent = STEPS[step].title;
    text.textContent = STEPS[step].text;
    count.textContent = `${step + 1} of ${STEPS.length}`;
    back.disabled = step === 0;
    next.disabled = step === STEPS.length - 1;
  };
  app.subscribe(follow);
  follow();
}
