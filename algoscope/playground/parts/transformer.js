// The decoder-only transformer of algoscope/model (paper §2.1, eq. 1-7), in the browser.
//
// All arrays are Float64Array, rows one after the other: hidden states are
// [time × hidden], the weights of a head's attention [time × time]. Weights that were
// saved as float32 are computed with in float64.
//
// A context is run once and its keys and values kept; any number of queries can then be
// asked after any prefix of it, each in the time of one token.

import { ACTIVATIONS, Matrix, layerNorm, softmax } from "./kernels.js";
import { DamagedFile } from "./safetensors.js";

// Return x̃₁, ỹ₁, …, x̃ₙ (and ỹₙ with `whole`) as rows [0, x] and [y, 0].
export function encode(x, y, dim, whole = false) {
  const time = Math.max(2 * x.length - (whole ? 0 : 1), 0);
  const tokens = new Float64Array(time * (dim + 1));
  for (let t = 0; t < time; t++) {
    const example = t >> 1;
    if (t % 2) tokens[t * (dim + 1)] = y[example];
    else for (let k = 0; k < dim; k++) tokens[t * (dim + 1) + 1 + k] = x[example][k];
  }
  return tokens;
}

const LAYER_FIELDS = [
  "w_q", "w_k", "w_v", "w_f", "w_2", "w_1", "b_q", "b_k", "b_v", "b_f", "b_2", "b_1",
];
const INNER_FIELDS = ["w_2", "w_1", "b_2"];
const fail = (problem) => {
  throw new DamagedFile(`The files do not hold a saved transformer: ${problem}.`);
};

function readBlock(block) {
  if (block === null || typeof block !== "object") fail("config.json has no block");
  const known = {
    preNorm: block.pre_norm ?? false,
    activation: block.activation ?? "gelu",
    epsilon: block.layer_norm_epsilon ?? 1e-5,
    scale: block.attention_scale ?? 1,
    imaginary: block.imaginary_timestep ?? false,
  };
  if (!Object.hasOwn(ACTIVATIONS, known.activation)) fail("its activation is unknown");
  for (const name of ["epsilon", "scale"]) {
    if (!Number.isFinite(known[name]) || known[name] < 0) fail(`its ${name} is no number`);
  }
  for (const name of ["preNorm", "imaginary"]) {
    if (typeof known[name] !== "boolean") fail(`its ${name} is neither true nor false`);
  }
  return known;
}

function readWidths(widths, layers) {
  if (widths === null) return null;
  const isWidth = (each) => Number.isSafeInteger(each) && each > 0;
  if (!Array.isArray(widths) || widths.length !== layers || !widths.every(isWidth)) {
    fail("its inner_sizes are not the widths of its layers");
  }
  return widths;
}

// Return some columns of a matrix, rows one after the other.
function columns(matrix, rows, first, last) {
  const size = matrix.length / rows, part = new Float64Array(rows * (last - first));
  for (let row = 0; row < rows; row++) {
    part.set(matrix.subarray(row * size + first, row * size + last), row * (last - first));
  }
  return part;
}

export class Transformer {
  constructor(config, tensors) {
    this.block = readBlock(config.block);
    const shapeOf = (name, axes) => {
      const { shape } = tensors.get(name) ?? fail(`${name} is missing`);
      if (shape.length !== axes) fail(`${name} has ${shape.length} axes, not ${axes}`);
      return shape;
    };
    const [hidden, token] = shapeOf("w_e", 2);
    const [maxTime] = shapeOf("positions", 2);
    const [layers, heads, key] = shapeOf("layers.w_q", 4);
    const value = shapeOf("layers.w_v", 4)[2];
    const told = readWidths(config.inner_sizes ?? null, layers);
    const widths = told ?? Array(layers).fill(shapeOf("layers.w_2", 3)[1]);
    if (token < 2 || Math.min(layers, hidden, heads, key, value, ...widths) < 1) fail("a size is zero");
    if (maxTime < 3) fail("it has no room for an example");
    Object.assign(this, { hidden, token, maxTime, heads, key, value });
    this.numLayers = layers;
    // MLPs of different widths are held as one: their units stand one after the other.
    const inner = told ? told.reduce((sum, each) => sum + each) : widths[0];
    const shapes = {
      w_e: [hidden, token], positions: [maxTime, hidden], w_o: [hidden], b_o: [],
      w_q: [heads, key, hidden], w_k: [heads, key, hidden], w_v: [heads, value, hidden],
      w_f: [heads, hidden, value], w_2: [inner, hidden], w_1: [hidden, inner],
      b_q: [heads, key], b_k: [heads, key], b_v: [heads, value], b_f: [hidden],
      b_2: [inner], b_1: [hidden],
    };
    const take = (name, shape) => {
      const tensor = tensors.get(name) ?? fail(`${name} is missing`);
      if (String(tensor.shape) !== String(shape)) {
        fail(`${name} has the shape [${tensor.shape}], not [${shape}]`);
      }
      return tensor.values;
    };
    for (const name of ["w_e", "positions", "w_o", "b_o"]) this[name] = take(name, shapes[name]);
    const held = LAYER_FIELDS.map((name) => {
      const joined = told && INNER_FIELDS.includes(name);
      return [name, take(`layers.${name}`, joined ? shapes[name] : [layers, ...shapes[name]])];
    });
    let first = 0; // the layer's first unit among all
    this.layers = widths.map((width, index) => {
      const last = first + width;
      const layer = Object.fromEntries(held.map(([name, all]) => {
        if (told && name === "w_1") return [name, columns(all, hidden, first, last)];
        if (told && name === "w_2") return [name, all.subarray(first * hidden, last * hidden)];
        if (told && name === "b_2") return [name, all.subarray(first, last)];
        const size = all.length / layers;
        return [name, all.subarray(index * size, (index + 1) * size)];
      }));
      first = last;
      return this.#prepare(layer, width);
    });
    this.readIn = new Matrix(this.w_e, hidden, token);
    this.readOut = new Matrix(this.w_o, 1, hidden);
  }

  get dim() {
    return this.token - 1;
  }

  get maxExamples() {
    return (this.maxTime - 1) >> 1;
  }

  // Run the tokens of a context x₁ y₁ … and keep what is asked for.
  // Returns { output, hidden: H⁽⁰⁾ … H⁽ᴸ⁾, attention: [layer][head], past }.
  run(tokens, { edit = null, attention = false } = {}) {
    const time = tokens.length / this.token;
    if (time > this.maxTime) throw new RangeError(`At most ${this.maxTime} tokens fit.`);
    const edited = (depth, states) => (edit ? (edit(depth, states) ?? states) : states);
    let states = edited(0, this.#embed(tokens, time, 0));
    const hidden = [states], weights = [], past = [];
    for (const [index, layer] of this.layers.entries()) {
      const step = this.#layer(layer, states, time, null, attention);
      states = edited(index + 1, step.states);
      hidden.push(states);
      past.push({ keys: step.keys, values: step.values });
      if (attention) weights.push(step.weights);
    }
    const output = this.#readOut(states, time);
    return { output, hidden, attention: attention ? weights : null, past, time };
  }

  // Return the outputs for many queries, each asked after the first `time` tokens of a
  // run; with `layers`, their hidden states too.
  ask(run, queries, time = run.time, { layers = false } = {}) {
    const count = queries.length;
    if (time >= this.maxTime) throw new RangeError(`At most ${this.maxExamples} examples fit.`);
    const tokens = new Float64Array(count * this.token);
    queries.forEach((query, i) => tokens.set(query, i * this.token + 1));
    let states = this.#embed(tokens, count, time, 0);
    const hidden = [states];
    this.layers.forEach((layer, index) => {
      states = this.#layer(layer, states, count, { ...run.past[index], time }).states;
      if (layers) hidden.push(states);
    });
    const output = this.#readOut(states, count);
    return layers ? { output, hidden } : output;
  }

  #embed(tokens, count, first, step = 1) {
    const states = this.readIn.times(tokens, count);
    for (let i = 0; i < count; i++) {
      const place = (first + i * step) * this.hidden;
      for (let k = 0; k < this.hidden; k++) states[i * this.hidden + k] += this.positions[place + k];
    }
    return states;
  }

  // H⁽ˡ⁾ → H⁽ˡ⁺¹⁾. Without `past` each row attends to the rows up to itself; with it,
  // to the past tokens and itself.
  #layer(layer, states, count, past, keepWeights = false) {
    const { hidden, heads, key, value, block } = this;
    const read = block.preNorm ? layerNorm(states, count, hidden, block.epsilon) : states;
    const queries = layer.w_q.times(read, count, layer.b_q);
    for (let i = 0; i < queries.length; i++) queries[i] *= block.scale;
    // Softmax cancels a key's bias, unless an imaginary zero is among the scores.
    const keys = layer.w_k.times(read, count, block.imaginary ? layer.b_k : null);
    const values = layer.w_v.times(read, count, layer.b_v);
    const mixed = new Float64Array(count * heads * value);
    const before = past ? past.time : 0;
    const scores = new Float64Array(before + count);
    const weights = keepWeights
      ? Array.from({ length: heads }, () => new Float64Array(count * count)) : null;
    for (let i = 0; i < count; i++) {
      const own = past ? 1 : i + 1; // rows of this call that row i sees
      const first = past ? i : 0;
      for (let head = 0; head < heads; head++) {
        if (!weights && !layer.headWrites[head]) continue;
        const q = (i * heads + head) * key;
        for (let s = 0; s < before + own; s++) {
          const from = s < before ? past.keys : keys;
          const k = ((s < before ? s : first + s - before) * heads + head) * key;
          let score = 0;
          for (let c = 0; c < key; c++) score += queries[q + c] * from[k + c];
          scores[s] = score;
        }
        softmax(scores, before + own, block.imaginary);
        if (weights) weights[head].set(scores.subarray(0, own), i * count);
        const out = (i * heads + head) * value;
        for (let s = 0; s < before + own; s++) {
          const from = s < before ? past.values : values;
          const v = ((s < before ? s : first + s - before) * heads + head) * value;
          const weight = scores[s];
          if (weight === 0) continue;
          for (let c = 0; c < value; c++) mixed[out + c] += weight * from[v + c];
        }
      }
    }
    const next = layer.w_f.times(mixed, count, layer.b_f);
    for (let i = 0; i < next.length; i++) next[i] += states[i];
    const normed = layerNorm(next, count, hidden, block.epsilon);
    const units = layer.w_2.times(normed, count, layer.b_2);
    const activation = ACTIVATIONS[block.activation];
    for (let i = 0; i < units.length; i++) units[i] = activation(units[i]);
    const added = layer.w_1.times(units, count, layer.b_1);
    for (let i = 0; i < next.length; i++) next[i] += added[i];
    return { states: next, keys, values, weights };
  }

  #readOut(states, count) {
    const { hidden, block } = this;
    const last = block.preNorm ? layerNorm(states, count, hidden, block.epsilon) : states;
    return this.readOut.times(last, count, this.b_o);
  }

  // Return a layer's arrays as matrices, without inner units that write nothing, and
  // which heads write something.
  #prepare(layer, inner) {
    const { hidden, heads, key, value } = this;
    const writes = (unit) => {
      for (let h = 0; h < hidden; h++) if (layer.w_1[h * inner + unit] !== 0) return true;
      return false;
    };
    const used = Array.from({ length: inner }, (_, unit) => unit).filter(writes);
    const w_1 = new Float64Array(hidden * used.length), w_2 = new Float64Array(used.length * hidden);
    used.forEach((unit, place) => {
      w_2.set(layer.w_2.subarray(unit * hidden, (unit + 1) * hidden), place * hidden);
      for (let h = 0; h < hidden; h++) w_1[h * used.length + place] = layer.w_1[h * inner + unit];
    });
    const ofHead = hidden * value;
    return {
      ...layer,
      headWrites: Array.from({ length: heads }, (_, head) => (
        layer.w_f.subarray(head * ofHead, (head + 1) * ofHead).some((each) => each !== 0))),
      w_q: new Matrix(layer.w_q, heads * key, hidden),
      w_k: new Matrix(layer.w_k, heads * key, hidden),
      w_v: new Matrix(layer.w_v, heads * value, hidden),
      w_f: new Matrix(this.#joinHeads(layer.w_f), hidden, heads * value),
      w_2: new Matrix(w_2, used.length, hidden),
      b_2: Float64Array.from(used, (unit) => layer.b_2[unit]),
      w_1: new Matrix(w_1, hidden, used.length),
    };
  }

  // [heads × hidden × value] → [hidden × (heads · value)], one matrix for all heads.
  #joinHeads(w) {
    const { heads, hidden, value } = this;
    const joined = new Float64Array(w.length);
    for (let m = 0; m < heads; m++) {
      for (let h = 0; h < hidden; h++) {
        const from = (m * hidden + h) * value;
        joined.set(w.subarray(from, from + value), (h * heads + m) * value);
      }
    }
    return joined;
  }
}
