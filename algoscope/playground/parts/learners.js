// Any learner of the page as a function: a transformer, whole or stopped after a layer, or
// a textbook predictor. `learn` reads the examples once; `ask` answers many queries after
// the first n of them.

import { TEXTBOOK, textbook } from "./predictors.js";
import { encode } from "./transformer.js";

export const isTextbook = (id) => textbook(id) !== null;

// The name of a learner in a sentence, and a short one.
export const nameOf = (id) => textbook(id)?.name ?? id;
export const shortNameOf = (id) => textbook(id)?.short ?? id;

// Draw a learner beside the chosen one, or no longer.
export function toggleShown(app, id) {
  const { shown } = app.state;
  app.update({ shown: shown.includes(id) ? shown.filter((each) => each !== id) : [...shown, id] });
}

// The learners to draw beside the chosen one: [{ id, kind, learner }], where `kind` names
// their color.
export function learnersBeside(app) {
  app.kept.beside ??= learnAllBeside(app);
  return app.kept.beside;
}

function learnAllBeside(app) {
  const { shown, model, x, y } = app.state;
  const found = TEXTBOOK.filter(({ id }) => shown.includes(id)).map(({ id }) => ({ id, kind: id }));
  for (const [id, each] of app.models) {
    if (shown.includes(id) && each.dim === app.dim) found.push({ id, kind: each.kind });
  }
  return found.filter(({ id }) => id !== model)
    .map(({ id, kind }) => ({ id, kind, learner: learn(app, id, x, y) }))
    .filter(({ learner }) => !learner.problem);
}

// Return { ask(queries, n) } for the examples, or { problem } where it cannot run.
export function learn(app, id, x, y, { layer = null, parameter = null } = {}) {
  const known = textbook(id);
  if (known) return learnTextbook(known, x, y, parameter ?? app.state.parameter[id]);
  const model = app.models.get(id);
  if (x.length > model.maxExamples) {
    return { problem: `${model.name} takes at most ${model.maxExamples} examples.` };
  }
  const { transformer, readouts } = model;
  const run = transformer.run(encode(x, y, model.dim, true));
  if (layer === null || !readouts || layer >= readouts.weights.length) {
    return { ask: (queries, n = x.length) => transformer.ask(run, queries, 2 * n) };
  }
  return {
    ask(queries, n = x.length) {
      const { hidden } = transformer.ask(run, queries, 2 * n, { layers: true });
      return readOut(readouts, layer, hidden[layer], transformer.hidden);
    },
  };
}

function learnTextbook({ fit }, x, y, parameter) {
  const dim = x[0]?.length ?? 1;
  const fits = new Map();
  return {
    ask(queries, n = x.length) {
      if (!fits.has(n)) fits.set(n, fit(x.slice(0, n), y.slice(0, n), queries[0]?.length ?? dim, parameter));
      return queries.map(fits.get(n).answer);
    },
  };
}

// ŷ = offset + weightsᵀ (h − center), for every row of hidden states.
export function readOut({ center, weights, offset }, layer, states, size) {
  const out = new Float64Array(states.length / size).fill(offset);
  for (let i = 0; i < out.length; i++) {
    for (let k = 0; k < size; k++) {
      out[i] += weights[layer][k] * (states[i * size + k] - center[layer][k]);
    }
  }
  return out;
}
