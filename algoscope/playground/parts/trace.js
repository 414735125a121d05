// A trace (algoscope/construction/trace.py): what every register should hold and what it
// holds, at the input and after every layer, and where each number comes from.

import { average, interpret, sourcesOf } from "./interpreter.js";
import { encode } from "./transformer.js";

// Return the trace of a compiled model on examples, the last of which is the query.
//   steps[ℓ]  { label, events, entries: [{ name, rows, exact, computed, isWritten, counts }] }
//   with exact and computed as [token][component], counts a set of tokens or null for all
export function traceModel(model, x, y) {
  const { transformer, program: data } = model;
  const flat = encode(x, y, model.dim);
  const size = model.dim + 1, time = flat.length / size;
  const tokens = Array.from({ length: time }, (_, t) => [...flat.subarray(t * size, (t + 1) * size)]);
  const run = transformer.run(flat, { attention: true });
  const state = interpret(data, tokens);
  const { labels, entries, shown, counts, events } = data.layout;
  const steps = labels.map((label, layer) => {
    const here = events.filter((each) => each.layer === layer);
    const written = new Set(here.map((each) => data.program.events[each.event].out));
    return {
      label,
      layer,
      events: here,
      entries: shown[layer].map((number, place) => {
        const { register, name, components, rows } = entries[number];
        const hidden = run.hidden[layer];
        return {
          register, name, rows, time,
          exact: state[register].map((column) => components.map((k) => column[k])),
          computed: tokens.map((_, t) => rows.map((row) => hidden[t * transformer.hidden + row])),
          isWritten: layer === 0 || written.has(register),
          counts: counts ? new Set(counts[layer][place]) : null,
        };
      }),
    };
  });
  return { steps, run, data, time, prediction: run.output.at(-1), exactPrediction: exactOutput(data, state, time) };
}

function exactOutput({ program, arrays }, state, time) {
  let total = arrays[program.output.constant][0];
  for (const [register, name] of program.output.terms) {
    arrays[name][0].forEach((weight, k) => { total += weight * state[register][time - 1][k]; });
  }
  return total;
}

// Return how a register came to its number in one column:
//   { event, formula, part, layer, sources: [{ register, components, token, weight }], head }
// `head` is the one of that layer whose attention is nearest to K, `weight` what it gave;
// `components` is null for the register that is added to, component by component.
export function writerOf(trace, register, token) {
  const { program, layout } = trace.data;
  const line = layout.events.find((each) => program.events[each.event].out === register);
  if (!line) return null;
  const event = program.events[line.event];
  const sources = [];
  let head = null;
  for (const { at, ...source } of sourcesOf(event, trace.data)) {
    if (!at) {
      sources.push({ ...source, token, weight: null });
      continue;
    }
    const wanted = average(at, trace.time);
    const stays = stayingColumns(at, trace.time);
    if (stays.has(token)) continue; // nothing is read there: it is kept as it was
    const heads = trace.run.attention[line.layer - 1];
    head = nearestHead(heads, wanted, trace.time, stays);
    wanted[token].forEach((weight, j) => {
      if (weight) sources.push({ ...source, token: j, weight: heads[head][token * trace.time + j] });
    });
  }
  return { ...line, event, sources, head };
}

// The columns that a move leaves as they are: those that would read themselves.
function stayingColumns(at, time) {
  const columns = Array.from({ length: time }, (_, i) => i);
  const moves = at.kind === "Sets" && columns.some((i) => String(at.sets[i]) !== String(i));
  return new Set(columns.filter((i) => moves && String(at.sets[i]) === String(i)));
}

// The columns that a step changes in a register: all, or those that a move writes.
export function changedColumns(trace, register) {
  const { program } = trace.data;
  const event = program.events.find((each) => each.out === register);
  const stays = event?.kind === "Read" ? stayingColumns(event.at, trace.time) : new Set();
  return Array.from({ length: trace.time }, (_, i) => i).filter((i) => !stays.has(i));
}

function nearestHead(heads, wanted, time, stays) {
  const far = heads.map((head) => wanted.reduce((sum, row, i) => (stays.has(i) ? sum
    : sum + row.reduce((s, each, j) => s + Math.abs(each - head[i * time + j]), 0)), 0));
  return far.indexOf(Math.min(...far));
}
