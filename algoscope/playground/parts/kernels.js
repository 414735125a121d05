// Matrix kernels on Float64Array, row by row, and the activations of a feed-forward part.

const SPARSE = 0.25; // the share of numbers other than 0 below which zeros are skipped

// A matrix [outputs × inputs], row after row; of one that is mostly zeros, as compiled
// ones are, only the other numbers and their columns are kept.
export class Matrix {
  constructor(values, outputs, inputs) {
    Object.assign(this, { values, outputs, inputs, columns: null });
    const filled = values.reduce((count, each) => count + (each !== 0 ? 1 : 0), 0);
    if (filled > SPARSE * values.length) return;
    this.values = new Float64Array(filled);
    this.columns = new Int32Array(filled);
    this.starts = new Int32Array(outputs + 1);
    let next = 0;
    for (let o = 0; o < outputs; o++) {
      for (let k = 0; k < inputs; k++) {
        if (values[o * inputs + k] === 0) continue;
        this.values[next] = values[o * inputs + k];
        this.columns[next++] = k;
      }
      this.starts[o + 1] = next;
    }
  }

  // Return W x + b for every row x of [count × inputs].
  times(rows, count, b = null) {
    const out = new Float64Array(count * this.outputs);
    if (this.columns) this.#timesSparse(rows, count, out);
    else this.#timesDense(rows, count, out);
    if (b) {
      for (let i = 0, at = 0; i < count; i++) {
        for (let o = 0; o < this.outputs; o++) out[at++] += b[o];
      }
    }
    return out;
  }

  #timesSparse(rows, count, out) {
    const { values, columns, starts, outputs, inputs } = this;
    for (let i = 0; i < count; i++) {
      for (let o = 0; o < outputs; o++) {
        let sum = 0;
        for (let e = starts[o]; e < starts[o + 1]; e++) sum += values[e] * rows[i * inputs + columns[e]];
        out[i * outputs + o] = sum;
      }
    }
  }

  // Four rows at a time, so that each weight is loaded once for them.
  #timesDense(rows, count, out) {
    const { values, outputs, inputs } = this;
    let i = 0;
    for (; i + 4 <= count; i += 4) {
      const r0 = i * inputs, r1 = r0 + inputs, r2 = r1 + inputs, r3 = r2 + inputs;
      for (let o = 0; o < outputs; o++) {
        const column = o * inputs;
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (let k = 0; k < inputs; k++) {
          const w = values[column + k];
          s0 += rows[r0 + k] * w;
          s1 += rows[r1 + k] * w;
          s2 += rows[r2 + k] * w;
          s3 += rows[r3 + k] * w;
        }
        const at = i * outputs + o;
        out[at] = s0;
        out[at + outputs] = s1;
        out[at + 2 * outputs] = s2;
        out[at + 3 * outputs] = s3;
      }
    }
    for (; i < count; i++) {
      for (let o = 0; o < outputs; o++) {
        let sum = 0;
        for (let k = 0; k < inputs; k++) sum += rows[i * inputs + k] * values[o * inputs + k];
        out[i * outputs + o] = sum;
      }
    }
  }
}

// Return λ(h) = (h − E[h]) / √(Var[h] + ε) for every row (eq. 7).
export function layerNorm(rows, count, size, epsilon) {
  const out = new Float64Array(count * size);
  for (let i = 0; i < count; i++) {
    const row = i * size;
    let mean = 0;
    for (let k = 0; k < size; k++) mean += rows[row + k];
    mean /= size;
    let variance = 0;
    for (let k = 0; k < size; k++) {
      const centered = rows[row + k] - mean;
      out[row + k] = centered;
      variance += centered * centered;
    }
    const scale = 1 / Math.sqrt(variance / size + epsilon);
    for (let k = 0; k < size; k++) out[row + k] *= scale;
  }
  return out;
}

// Replace scores[0 … count) by their softmax; with `imaginary`, a zero logit is added.
export function softmax(scores, count, imaginary) {
  let top = imaginary ? 0 : -Infinity;
  for (let i = 0; i < count; i++) if (scores[i] > top) top = scores[i];
  let total = 0;
  for (let i = 0; i < count; i++) {
    scores[i] = Math.exp(scores[i] - top);
    total += scores[i];
  }
  if (imaginary) total += Math.exp(-top);
  for (let i = 0; i < count; i++) scores[i] /= total;
}

function polynomial(x, coefficients) {
  let value = 0;
  for (let i = coefficients.length - 1; i >= 0; i--) value = value * x + coefficients[i];
  return value;
}

// Rational approximations of erf by Sun Microsystems (fdlibm's s_erf.c), whose error is
// below one unit in the last place.
const SMALL = [
  [1.28379167095512558561e-1, -3.25042107247001499370e-1, -2.84817495755985104766e-2,
    -5.77027029648944159157e-3, -2.37630166566501626084e-5],
  [1, 3.97917223959155352819e-1, 6.50222499887672944485e-2, 5.08130628187576562776e-3,
    1.32494738004321644526e-4, -3.96022827877536812320e-6],
];
const MIDDLE = [
  [-2.36211856075265944077e-3, 4.14856118683748331666e-1, -3.72207876035701323847e-1,
    3.18346619901161753674e-1, -1.10894694282396677476e-1, 3.54783043256182359371e-2,
    -2.16637559486879084300e-3],
  [1, 1.06420880400844228286e-1, 5.40397917702171048937e-1, 7.18286544141962662868e-2,
    1.26171219808761642112e-1, 1.36370839120290507362e-2, 1.19844998467991074170e-2],
];
const LARGE = [
  [-9.86494403484714822705e-3, -6.93858572707181764372e-1, -1.05586262253232909814e1,
    -6.23753324503260060396e1, -1.62396669462573470355e2, -1.84605092906711035994e2,
    -8.12874355063065934246e1, -9.81432934416914548592],
  [1, 1.96512716674392571292e1, 1.37657754143519042600e2, 4.34565877475229228821e2,
    6.45387271733267880336e2, 4.29008140027567833386e2, 1.08635005541779435134e2,
    6.57024977031928170135, -6.04244152148580987438e-2],
];
const LARGEST = [
  [-9.86494292470009928597e-3, -7.99283237680523006574e-1, -1.77579549177547519889e1,
    -1.60636384855821916062e2, -6.37566443368389627722e2, -1.02509513161107724954e3,
    -4.83519191608651397019e2],
  [1, 3.03380607434824582924e1, 3.25792512996573918826e2, 1.53672958608443695994e3,
    3.19985821950859553908e3, 2.55305040643316442583e3, 4.74528541206955367215e2,
    -2.24409524465858183362e1],
];
const ratio = (x, [above, below]) => polynomial(x, above) / polynomial(x, below);

export function erf(x) {
  const size = Math.abs(x);
  if (size < 0.84375) return x + x * ratio(x * x, SMALL);
  let value;
  if (size < 1.25) {
    value = 8.45062911510467529297e-1 + ratio(size - 1, MIDDLE);
  } else if (size < 6) {
    const s = 1 / (size * size);
    const exponent = ratio(s, size < 1 / 0.35 ? LARGE : LARGEST);
    // exp(−x²) loses digits of x²; the rounded square is exact, the rest is small.
    const rounded = Math.fround(size);
    const tail = Math.exp(-rounded * rounded - 0.5625)
      * Math.exp((rounded - size) * (rounded + size) + exponent);
    value = 1 - tail / size;
  } else {
    value = 1;
  }
  return x < 0 ? -value : value;
}

const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : 1 - 1 / (1 + Math.exp(x)));
const TANH_SCALE = Math.sqrt(2 / Math.PI);

export const ACTIVATIONS = {
  gelu: (x) => x * (0.5 + 0.5 * erf(x * Math.SQRT1_2)),
  gelu_tanh: (x) => x * 0.5 * (1 + Math.tanh(TANH_SCALE * (x + 0.044715 * x * x * x))),
  relu: (x) => (x > 0 ? x : 0),
  tanh: Math.tanh,
  silu: (x) => x * sigmoid(x),
  softplus: (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
  sigmoid,
  squared_relu: (x) => (x > 0 ? x * x : 0),
};
