// A learner's function of one input as a curve, with the textbook predictors beside it.
//
// With more than two inputs the curve is a cut: the first input varies, the others are
// those of the query.

import { draw } from "../dom.js";
import { learnersBeside } from "../learners.js";
import { madeFor, radius } from "../shifts.js";
import { makeFrame, rangeFor } from "./frame.js";

const PLACES = 81, FINE_PLACES = 401; // the second for steps of nearest neighbors

export function curveFrame(app, width) {
  const { x, y, query } = app.state;
  const height = Math.round(Math.min(Math.max(width * 0.8, 260), 460));
  const right = rangeFor(1.05 * Math.max(Math.abs(query[0]), ...x.map((each) => Math.abs(each[0]))));
  const top = rangeFor(1.1 * Math.max(0, ...y.map(Math.abs)));
  return makeFrame(width, height, right, top);
}

function places(app, right, count) {
  return Array.from({ length: count }, (_, i) => {
    const at = -right + (2 * right * i) / (count - 1);
    return [at, ...app.state.query.slice(1)];
  });
}

function path(frame, queries, answers) {
  const limit = 4 * frame.top; // far outside the frame, which cuts it off
  return queries.map(([x], i) => {
    const y = Math.min(Math.max(answers[i], -limit), limit);
    return `${i ? "L" : "M"}${frame.toX(x).toFixed(1)} ${frame.toY(Number.isFinite(y) ? y : 0).toFixed(1)}`;
  }).join("");
}

// The values of one input that were common in training, as a band.
function training(app, frame) {
  if (!madeFor(app.model)) return [];
  const edge = Math.min(radius(1), frame.right);
  const { toX, toY } = frame;
  return [
    draw("rect", {
      class: "band", x: toX(-edge), y: toY(frame.top), width: toX(edge) - toX(-edge), height: frame.inner.height,
    }),
    draw("text", { class: "note", x: toX(-edge) + 5, y: toY(-frame.top) - 7 }, "95 % of training"),
  ];
}

export function drawCurves(app, frame) {
  const { state } = app;
  const drawn = (id, learner, kind) => {
    const queries = places(app, frame.right, id === "knn" ? FINE_PLACES : PLACES);
    return draw("path", { class: `line ${kind}`, d: path(frame, queries, learner.ask(queries)) });
  };
  const lines = learnersBeside(app).map(({ id, kind, learner }) => drawn(id, learner, `beside of-${kind}`));
  if (!app.learner.problem) lines.push(drawn(state.model, app.learner, "own"));
  return [...training(app, frame), ...lines];
}
