// The exact meaning of a program (algoscope/construction/language/interpreter.py).
//
// A program is the data that Python saved: registers, events, and arrays by name. A state
// holds for every register its columns, one vector per token: state[register][token].

// Return the matrix whose row i averages over the timesteps K(i) that token i reads.
export function average(at, time) {
  const rows = Array.from({ length: time }, () => new Array(time).fill(0));
  const put = (i, members) => members.forEach((j) => { rows[i][j] = 1 / members.length; });
  for (let i = 0; i < time; i++) {
    if (at.kind === "Earlier") put(i, i >= at.steps ? [i - at.steps] : []);
    else if (at.kind === "Single") put(i, i >= at.token + (at.later ? 1 : 0) ? [at.token] : []);
    else if (at.kind === "Labels") put(i, rows.map((_, j) => j).filter((j) => j <= i && j % 2));
    else if (at.kind === "Sets") put(i, at.sets[i]);
    else throw new Error(`a map of kind ${at.kind}`);
  }
  return rows;
}

const dot = (a, b) => a.reduce((sum, each, k) => sum + each * b[k], 0);
const length = (vector) => Math.hypot(...vector);
const quotient = (above, below) => above.map((each) => (below === 0 ? 0 : each / below));

// Return Σ_r M_r h[r] + c in every column.
function evaluate(value, state, arrays, time) {
  const constant = arrays[value.constant];
  return Array.from({ length: time }, (_, t) => {
    const total = [...constant];
    for (const [register, name] of value.terms) {
      arrays[name].forEach((row, k) => { total[k] += dot(row, state[register][t]); });
    }
    return total;
  });
}

function mixRows(weights, columns) {
  return weights.map((row) => columns[0].map((_, k) => {
    let sum = 0;
    row.forEach((weight, j) => { if (weight) sum += weight * columns[j][k]; });
    return sum;
  }));
}

// α of a head that scores by content, the imaginary zero included.
function contentWeights(query, key, inside) {
  return query.map((q, i) => {
    const scores = key.map((k, j) => (inside[i][j] > 0 ? dot(q, k) : -Infinity));
    const top = Math.max(0, ...scores);
    const weights = scores.map((score) => Math.exp(score - top));
    const total = weights.reduce((sum, each) => sum + each, Math.exp(-top));
    return weights.map((each) => each / total);
  });
}

// Return what one event computes, without what it is added to.
function run(event, { program, arrays }, state, time) {
  const of = (value) => evaluate(value, state, arrays, time);
  if (event.kind === "Read") return mixRows(average(event.at, time), of(event.source));
  if (event.kind === "Attend") {
    const inside = average(event.at, time);
    const read = event.heads.map(([query, key, value]) =>
      mixRows(contentWeights(of(query), of(key), inside), of(value)));
    return read.reduce((sum, each) => sum.map((row, t) => row.map((v, k) => v + each[t][k])));
  }
  const norm = event.norm === undefined ? null : of(program.norms[event.norm]);
  if (event.kind === "Divide") {
    return of(event.value).map((above, t) => quotient(above, length(norm[t])));
  }
  if (event.kind !== "Multiply") throw new Error(`an event of kind ${event.kind}`);
  const p = of(event.p), q = of(event.q), plus = of(event.plus), mix = arrays[event.mix];
  return p.map((row, t) => {
    let products = row.map((each, k) => each * q[t][k]);
    if (norm) products = quotient(products, length(norm[t]) ** 2);
    return mix.map((weights, k) => dot(weights, products) + plus[t][k]);
  });
}

// Return what each register holds after it was written, given tokens [time][1 + dim].
export function interpret(data, tokens) {
  const { program, arrays } = data, time = tokens.length;
  const state = [tokens];
  for (const [register, name] of program.positions) state[register] = arrays[name].slice(0, time);
  for (const event of program.events) {
    const found = run(event, data, state, time);
    const before = event.into === null ? null : state[event.into];
    state[event.out] = before ? found.map((row, t) => row.map((v, k) => v + before[t][k])) : found;
  }
  return state;
}

// Return what an event reads, as { register, components, at }: `at` is K, or null for the
// event's own column. What it adds to, `into`, is read component by component.
export function sourcesOf(event, { program, arrays }) {
  const of = (values, at) => {
    const found = new Map();
    for (const [register, name] of values.flatMap((each) => each.terms)) {
      if (!found.has(register)) found.set(register, new Set());
      for (const row of arrays[name]) row.forEach((weight, k) => { if (weight) found.get(register).add(k); });
    }
    return [...found].map(([register, components]) => ({ register, components, at }));
  };
  const own = event.into === null ? [] : [{ register: event.into, components: null, at: null }];
  if (event.kind === "Read") return of([event.source], event.at);
  if (event.kind === "Attend") {
    const read = event.heads.flatMap(([, key, value]) => [key, value]);
    return [...of(read, event.at), ...of(event.heads.map(([query]) => query), null), ...own];
  }
  const norm = event.norm === undefined ? [] : [program.norms[event.norm]];
  const values = event.kind === "Divide" ? [event.value] : [event.p, event.q, event.plus];
  return [...of([...values, ...norm], null), ...own];
}
