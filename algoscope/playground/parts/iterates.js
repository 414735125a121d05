// Iterative solvers of Sw = b, S = XᵀX and b = XᵀY, after 0, 1, … steps
// (algoscope/layerwise/iterations.py).

const dot = (a, b) => a.reduce((sum, each, k) => sum + each * b[k], 0);
const apply = (matrix, vector) => matrix.map((row) => dot(row, vector));
const multiply = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((s, v, k) => s + v * b[k][j], 0)));

export function moments(x, y, dim) {
  const zero = () => new Array(dim).fill(0);
  const gram = zero().map(zero), moment = zero();
  x.forEach((each, t) => {
    for (let i = 0; i < dim; i++) {
      moment[i] += each[i] * y[t];
      for (let j = 0; j < dim; j++) gram[i][j] += each[i] * each[j];
    }
  });
  return { gram, moment };
}

// The largest eigenvalue of a symmetric matrix, by Jacobi's rotations.
export function largestEigenvalue(matrix) {
  const a = matrix.map((row) => [...row]), size = a.length;
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        off += a[p][q] ** 2;
        if (a[p][q] === 0) continue;
        const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.hypot(theta, 1));
        const c = 1 / Math.hypot(t, 1), s = t * c;
        for (let k = 0; k < size; k++) {
          [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
        }
        for (let k = 0; k < size; k++) {
          [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
        }
      }
    }
    if (off < 1e-300) break;
  }
  return Math.max(...a.map((row, i) => row[i]));
}

// w ← w + c/λ (b − Sw) from 0, λ the largest eigenvalue of S.
export function gdIterates(x, y, dim, steps, rate = 1) {
  const { gram, moment } = moments(x, y, dim);
  const largest = largestEigenvalue(gram);
  const size = rate / (largest > 0 ? largest : 1);
  const found = [new Array(dim).fill(0)];
  for (let step = 0; step < steps; step++) {
    const w = found.at(-1), applied = apply(gram, w);
    found.push(w.map((each, k) => each + size * (moment[k] - applied[k])));
  }
  return found;
}

// M ← 2M − MSM from S / ‖SSᵀ‖_F, w = Mb.
export function newtonIterates(x, y, dim, steps) {
  const { gram, moment } = moments(x, y, dim);
  const norm = Math.hypot(...multiply(gram, gram).flat()) || 1;
  let inverse = gram.map((row) => row.map((each) => each / norm));
  const found = [apply(inverse, moment)];
  for (let step = 0; step < steps; step++) {
    const product = multiply(multiply(inverse, gram), inverse);
    inverse = inverse.map((row, i) => row.map((each, j) => 2 * each - product[i][j]));
    found.push(apply(inverse, moment));
  }
  return found;
}
