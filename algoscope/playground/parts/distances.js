// How far a learner is from each textbook predictor: the squared difference of their
// predictions, averaged over queries x ~ N(0, I) and divided by d (SPD/d, paper §4.1).
//
// The queries are fixed, so that a distance changes only when the data do. Where "Break
// it" scales the inputs, it scales the queries too.

import { shortNumber } from "./dom.js";
import { isTextbook, learn, nameOf } from "./learners.js";
import { TEXTBOOK, olsWeights, textbook } from "./predictors.js";

const NUM_QUERIES = 36;
const LIKE = 0.02; // of the size of its predictions: a learner this near is called alike
const TIE = 2; // a factor between distances below which neither is called nearer

// Quantiles of the standard normal law, by Acklam's approximation.
function quantile(p) {
  const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269,
    -30.66479806614716, 2.506628277459239];
  const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972,
    -13.28068155288572, 1];
  const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838,
    -2.549732539343734, 4.374664141464968, 2.938163982698783];
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1];
  const at = (coefficients, x) => coefficients.reduce((sum, each) => sum * x + each, 0);
  if (p > 0.5) return -quantile(1 - p);
  if (p > 0.02425) return (at(a, (p - 0.5) ** 2) * (p - 0.5)) / at(b, (p - 0.5) ** 2);
  const q = Math.sqrt(-2 * Math.log(p));
  return at(c, q) / at(d, q);
}

const PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];

function halton(index, base) {
  let value = 0, share = 1 / base;
  for (let rest = index; rest > 0; rest = Math.floor(rest / base), share /= base) {
    value += (rest % base) * share;
  }
  return value;
}

const kept = new Map();

// Return queries that are spread like N(0, I).
export function normalQueries(dim, count = NUM_QUERIES) {
  const key = `${dim} ${count}`;
  if (!kept.has(key)) {
    const coordinate = (i, axis) => (dim === 1
      ? quantile((i + 0.5) / count) : quantile(halton(i + 1 + 20 * dim, PRIMES[axis % 16])));
    kept.set(key, Array.from({ length: count }, (_, i) => (
      Array.from({ length: dim }, (_, axis) => coordinate(i, axis)))));
  }
  return kept.get(key);
}

const queriesOf = (state) => normalQueries(state.query.length)
  .map((query) => query.map((each) => each * state.shift.x));

// A learner's answers at the fixed queries after all examples, computed once.
function answersOf(learner, queries) {
  learner.answers ??= Array.from(learner.ask(queries));
  return learner.answers;
}

// ∞ where answers overflow.
function meanSquare(a, b) {
  const found = a.reduce((sum, each, i) => sum + (each - b[i]) ** 2, 0) / a.length;
  return Number.isNaN(found) ? Infinity : found;
}

// Return the distance to each textbook predictor, and to zero, after the first n examples,
// after all of them for n = null.
function distancesAfter(learner, others, queries, n) {
  const dim = queries[0].length;
  const own = n === null ? answersOf(learner, queries) : Array.from(learner.ask(queries, n));
  const found = others.map(({ id, learner: other }) => (
    { id, distance: meanSquare(own, other.ask(queries, n ?? undefined)) / dim }));
  return { found, size: own.reduce((sum, each) => sum + each * each, 0) / own.length / dim };
}

const learnAll = (app) => TEXTBOOK.map(({ id }) => (
  { id, learner: learn(app, id, app.state.x, app.state.y) }));

// Return { found: [{ id, distance }], size } for the chosen learner on all examples.
export function distances(app, learner) {
  const { state } = app;
  return distancesAfter(learner, learnAll(app), queriesOf(state), null);
}

// Return the same after 1, 2, …, n examples.
export function distancesOverN(app, learner) {
  const queries = queriesOf(app.state), others = learnAll(app);
  return app.state.x.map((_, n) => distancesAfter(learner, others, queries, n + 1).found);
}

// Return the weights of the linear function nearest to a learner's (ILWD, paper §4.1).
export function impliedWeights(app, learner) {
  const queries = queriesOf(app.state);
  return olsWeights(queries, answersOf(learner, queries), queries[0].length);
}

// Return the sentence as parts: texts, and { id, text } for a predictor.
export function sentence(app, { found, size }) {
  const { state } = app;
  const count = state.x.length;
  const examples = `${count} example${count === 1 ? "" : "s"}`;
  const named = (id) => ({ id, text: textbook(id).name });
  const far = (each) => shortNumber(each.distance);
  const own = isTextbook(state.model);
  const sorted = found.filter(({ id }) => id !== state.model)
    .sort((a, b) => a.distance - b.distance);
  const [first, second] = sorted;
  if (!count) return ["Without examples there is nothing to learn from. Add one in the plot."];
  if (own) {
    return [`With these ${examples} you see `, named(state.model), ` itself: it is ${far(first)} from `,
      named(first.id), ` and ${far(second)} from `, named(second.id), "."];
  }
  const stopped = state.layer !== null && app.model.readouts ? `, stopped after layer ${state.layer},` : "";
  const who = `With these ${examples} the transformer ${nameOf(state.model)}${stopped} `;
  if (!Number.isFinite(size)) {
    return [who, "gives answers that are too large to be compared."];
  }
  if (first.distance > LIKE * Math.max(size, 1e-12)) {
    const ols = sorted.find(({ id }) => id === "ols");
    if (first === ols) {
      return [who, "answers like none of these algorithms: the nearest, ", named("ols"), `, is ${far(ols)} away.`];
    }
    return [who, `answers like none of these algorithms: it is ${far(ols)} from `, named("ols"),
      ` and ${far(first)} from the nearest, `, named(first.id), "."];
  }
  if (second.distance < TIE * first.distance + 1e-14) {
    return [who, "answers like ", named(first.id), ` (${far(first)} from it) and `,
      named(second.id), ` (${far(second)}): these examples do not tell them apart.`];
  }
  const other = sorted.find(({ id }) => id === (first.id === "ols" ? "sgd" : "ols"));
  return [who, "answers like ", named(first.id), `: ${far(first)} from it, and ${far(other)} from `,
    named(other.id), "."];
}
