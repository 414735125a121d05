// "Break it": ways to take the examples out of the training distribution, and what that
// distribution was.
//
//     x → s R x      y → s (v y)      then noise and an outlier are added to y

import { olsWeights } from "./predictors.js";
import { normalQueries } from "./distances.js";
import { signed } from "./dom.js";

// Fixed noise, so that the slider scales it and does not draw it anew.
const NOISE = normalQueries(7, 29).flat();
const noiseOf = (index) => NOISE[(index * 13) % NOISE.length];
const outlierOf = (count) => Math.floor(count / 2);

function rotate(x, degrees) {
  if (x.length !== 2 || !degrees) return x;
  const angle = (degrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [cos * x[0] - sin * x[1], sin * x[0] + cos * x[1]];
}

// Return the examples as the learner sees them.
export function shifted({ x, y }, shift) {
  const added = (index) => shift.noise * noiseOf(index)
    + (index === outlierOf(y.length) ? shift.outlier : 0);
  return {
    x: x.map((each) => rotate(each, shift.rotate).map((xi) => xi * shift.x)),
    y: y.map((each, index) => each * shift.x * shift.w + added(index)),
  };
}

// Return the example that `shifted` would move to x and y.
export function unshifted(x, y, index, count, shift) {
  const added = shift.noise * noiseOf(index)
    + (index === outlierOf(count) ? shift.outlier : 0);
  return {
    x: rotate(x.map((xi) => xi / shift.x), -shift.rotate),
    y: (y - added) / (shift.x * shift.w),
  };
}

// Return the radius that a share of N(0, I) lies within, by Wilson and Hilferty.
export function radius(dim, share = 0.95) {
  const z = share > 0.99 ? 2.75 : 1.645;
  const part = 2 / (9 * dim);
  return dim === 1 && share === 0.95 ? 1.96 : Math.sqrt(dim) * (1 - part + z * Math.sqrt(part)) ** 1.5;
}

const length = (vector) => Math.hypot(...vector);

// Return what a model was made for: { prior, noise, words }, or null for a formula.
export function madeFor(model) {
  if (!model) return null;
  const training = model.config.training;
  if (training && typeof training === "object") {
    const variance = (value, usual) => (Number.isFinite(value) && value >= 0 ? value : usual);
    const prior = variance(training.prior_variance, 1), noise = variance(training.noise_variance, 0);
    const words = training.task === "broad" ? "trained on many laws of inputs"
      : training.task === "control" ? "trained on one fixed function"
        : `trained on x ~ N(0, 1), w ~ N(0, ${prior})${noise ? `, noise of variance ${noise}` : ", no noise"}`;
    return { prior, noise, verb: "In training", words };
  }
  return { prior: 1, noise: 0.01, verb: "In its calibration", words: "calibrated on x, w ~ N(0, 1), noise of variance 0.01" };
}

// Return for each aspect of the data whether the model was made for it, and why.
export function insideTraining(model, x, y) {
  const made = madeFor(model);
  if (!made || !x.length) return [];
  const dim = x[0].length;
  const limit = radius(dim, 0.997);
  const largest = Math.max(...x.map(length));
  const w = olsWeights(x, y, dim);
  const deviation = Math.sqrt(made.prior);
  const residuals = y.map((each, t) => each - x[t].reduce((sum, xi, i) => sum + xi * w[i], 0));
  const freedom = Math.max(x.length - dim, 1);
  const missed = x.length > dim ? Math.sqrt(residuals.reduce((sum, r) => sum + r * r, 0) / freedom) : 0;
  const most = 3 * Math.sqrt(made.noise) + 0.02;
  const size = dim === 1 ? "|x|" : "‖x‖", weight = dim === 1 ? "|w|" : "‖w‖";
  return [
    {
      ok: largest <= limit,
      text: `Inputs: the largest ${size} is ${signed(largest)}. ${made.verb} 95 % were below ${signed(radius(dim))}.`,
    },
    {
      ok: length(w) <= limit * deviation,
      text: `Function: ${weight} is ${signed(length(w))}. ${made.verb} 95 % were below ${signed(radius(dim) * deviation)}.`,
    },
    {
      ok: missed <= most,
      text: `Noise: labels miss a linear function by ${signed(missed)}. ${made.verb} ${made.noise ? `by ${signed(Math.sqrt(made.noise))}` : "there was none"}.`,
    },
  ];
}
