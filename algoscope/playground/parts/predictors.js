// Textbook predictors. Each turns examples into a function of a query; the linear ones by
// weights. Parameters are those of algoscope/predictors.

const dot = (a, b) => a.reduce((sum, each, i) => sum + each * b[i], 0);
const zeros = (dim) => new Array(dim).fill(0);

// The minimum-norm least-squares weights, by Greville's recursion over the examples.
export function olsWeights(x, y, dim) {
  let w = zeros(dim);
  const seen = w.map(() => zeros(dim));
  const unseen = w.map((_, i) => zeros(dim).fill(1, i, i + 1));
  const threshold = 50 * dim * Number.EPSILON;
  x.forEach((each, t) => {
    const fresh = unseen.map((row) => dot(row, each));
    const known = seen.map((row) => dot(row, each));
    const size = dot(fresh, fresh), leverage = 1 + dot(each, known);
    const isNew = size > threshold * dot(each, each);
    const gain = isNew
      ? fresh.map((c) => c / size) : known.map((s) => s / Math.max(leverage, 1));
    for (let i = 0; i < dim; i++) {
      for (let j = 0; j < dim; j++) {
        seen[i][j] -= known[i] * gain[j];
        if (isNew) {
          seen[i][j] += leverage * gain[i] * gain[j] - gain[i] * known[j];
          unseen[i][j] -= fresh[i] * gain[j];
        }
      }
    }
    const residual = y[t] - dot(w, each);
    w = w.map((wi, i) => wi + gain[i] * residual);
  });
  return w;
}

// w = (XᵀX + λI)⁻¹ XᵀY, by Cholesky's factors.
export function ridgeWeights(x, y, dim, penalty) {
  const gram = zeros(dim).map((_, i) => zeros(dim).fill(penalty, i, i + 1));
  const moment = zeros(dim);
  x.forEach((each, t) => {
    for (let i = 0; i < dim; i++) {
      moment[i] += each[i] * y[t];
      for (let j = 0; j < dim; j++) gram[i][j] += each[i] * each[j];
    }
  });
  const low = gram.map(() => zeros(dim));
  for (let i = 0; i < dim; i++) {
    for (let j = 0; j <= i; j++) {
      let rest = gram[i][j];
      for (let k = 0; k < j; k++) rest -= low[i][k] * low[j][k];
      low[i][j] = i === j ? Math.sqrt(rest) : rest / low[j][j];
    }
  }
  const half = zeros(dim), w = zeros(dim);
  for (let i = 0; i < dim; i++) {
    half[i] = moment[i];
    for (let k = 0; k < i; k++) half[i] -= low[i][k] * half[k];
    half[i] /= low[i][i];
  }
  for (let i = dim - 1; i >= 0; i--) {
    w[i] = half[i];
    for (let k = i + 1; k < dim; k++) w[i] -= low[k][i] * w[k];
    w[i] /= low[i][i];
  }
  return w;
}

// One step of gradient descent from zero: w = 2α Σᵢ xᵢyᵢ.
export function gdWeights(x, y, dim, rate) {
  const w = zeros(dim);
  x.forEach((each, t) => each.forEach((xi, i) => { w[i] += 2 * rate * xi * y[t]; }));
  return w;
}

// One step per example, in order: w ← w − 2α x (wᵀx − y).
export function sgdWeights(x, y, dim, rate) {
  let w = zeros(dim);
  x.forEach((each, t) => {
    const residual = dot(w, each) - y[t];
    w = w.map((wi, i) => wi - 2 * rate * each[i] * residual);
  });
  return w;
}

// The mean label of the k nearest examples; of equally near ones, the earlier count.
export function knnAnswer(x, y, query, count) {
  if (!x.length) return 0;
  const distance = (each) => each.reduce((sum, xi, i) => sum + (xi - query[i]) ** 2, 0);
  const nearest = x.map((each, t) => [distance(each), t]);
  nearest.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const some = nearest.slice(0, count);
  return some.reduce((sum, [, t]) => sum + y[t], 0) / some.length;
}

const linear = (weights) => (x, y, dim, parameter) => {
  const w = weights(x, y, dim, parameter);
  return { weights: w, answer: (query) => dot(w, query) };
};

// In the order in which they are drawn. `parameter` is what a slider changes.
export const TEXTBOOK = [
  { id: "ols", name: "least squares", short: "OLS", fit: linear(olsWeights), parameter: null },
  {
    id: "ridge", name: "ridge regression", short: "ridge", fit: linear(ridgeWeights),
    parameter: { symbol: "λ", label: "penalty λ of ridge", low: 0.001, high: 10, usual: 0.5 },
  },
  {
    id: "gd", name: "one step of gradient descent", short: "one-step GD", fit: linear(gdWeights),
    parameter: { symbol: "α", label: "rate α of one-step GD", low: 0.001, high: 1, usual: 0.02 },
  },
  {
    id: "sgd", name: "SGD", short: "SGD", fit: linear(sgdWeights),
    parameter: { symbol: "α", label: "rate α of SGD", low: 0.001, high: 1, usual: 0.05 },
  },
  {
    id: "knn", name: "nearest neighbors", short: "kNN",
    fit: (x, y, dim, count) => ({
      weights: null, answer: (query) => knnAnswer(x, y, query, count),
    }),
    parameter: { symbol: "k", label: "neighbors k of kNN", low: 1, high: 7, usual: 3, whole: true },
  },
];

export const textbook = (id) => TEXTBOOK.find((each) => each.id === id) ?? null;

// Return the answers at every xᵢ from the examples before it.
export function textbookPrefixes(id, x, y, dim, parameter) {
  const { fit } = textbook(id);
  return x.map((query, n) => fit(x.slice(0, n), y.slice(0, n), dim, parameter).answer(query));
}
