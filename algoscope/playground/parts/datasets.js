// Examples to start from: presets, draws of the training task, and tables that users paste.

import { LARGEST } from "./state.js";

// A small generator of random numbers with a seed (mulberry32).
export function randomNumbers(seed) {
  let a = seed >>> 0;
  const uniform = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

const round = (value) => Math.round(value * 100) / 100;

// Return n examples of noiseless linear regression, x, w ~ N(0, I).
export function drawTask(dim, count, seed) {
  const { normal } = randomNumbers(seed);
  const vector = () => Array.from({ length: dim }, () => round(normal()));
  const w = vector();
  const x = Array.from({ length: count }, vector);
  return { x, y: x.map((each) => round(each.reduce((sum, xi, i) => sum + xi * w[i], 0))) };
}

const LINE = [[0.6], [-1.1], [1.5], [-0.4], [0.9]];
const PLANE = [[0.9, 0.3], [-0.7, 1.1], [0.2, -1.3], [1.4, 0.8], [-1.2, -0.5], [0.5, 1.6]];
const W = [1.2, -0.8];
const on = (x, w = W) => x.reduce((sum, xi, i) => sum + xi * (w[i] ?? 0), 0);
const exact = (x) => ({ x, y: x.map((each) => round(on(each))) });
const SCATTER = [0.55, -0.4, -0.6, 0.7, -0.35, 0.5];

// Each returns examples for d = 1 or d = 2.
export const PRESETS = [
  { id: "line", name: "Line", make: (dim) => exact(dim === 1 ? LINE : PLANE) },
  {
    id: "noise", name: "Noise",
    make(dim) {
      const { x, y } = exact(dim === 1 ? LINE : PLANE);
      return { x, y: y.map((each, i) => round(each + SCATTER[i])) };
    },
  },
  {
    id: "outlier", name: "Outlier",
    make(dim) {
      const { x, y } = exact(dim === 1 ? LINE : PLANE);
      return { x, y: y.map((each, i) => (i === 2 ? round(each - 4) : each)) };
    },
  },
  {
    id: "duplicate", name: "Duplicate",
    make(dim) {
      const { x, y } = exact(dim === 1 ? LINE : PLANE);
      return { x: [...x, x[1], x[1]], y: [...y, round(y[1] + 0.8), round(y[1] - 0.2)] };
    },
  },
  {
    id: "collinear", name: "Collinear",
    make(dim) {
      if (dim === 1) return exact([[0.7], [0.7], [0.7]]);
      return exact([0.4, -0.8, 1.2, -1.5, 0.9].map((t) => [t, round(0.6 * t)]));
    },
  },
];

export class UnreadableTable extends Error {}

// Return examples from lines of numbers, the last of which is y; a first line of names
// is skipped. Numbers are separated by commas, semicolons, tabs or spaces.
export function readTable(text, most) {
  if (text.length > 1_000_000) throw new UnreadableTable("The table is too long.");
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  const rows = lines.map((line) => line.split(/[\s,;]+/).filter(Boolean).map(Number));
  const isRow = (row) => row.every((each) => Number.isFinite(each) && Math.abs(each) <= LARGEST);
  if (rows.length > 1 && !isRow(rows[0])) {
    rows.shift();
    lines.shift();
  }
  if (!rows.length) throw new UnreadableTable("The table is empty.");
  rows.forEach((row, index) => {
    if (!isRow(row)) {
      throw new UnreadableTable(`Row ${index + 1} of the table is not numbers: “${lines[index].slice(0, 40)}”.`);
    }
    if (row.length < 2 || row.length !== rows[0].length) {
      throw new UnreadableTable(`Row ${index + 1} of the table has ${row.length} numbers; each needs x and y.`);
    }
  });
  if (rows.length > most) {
    throw new UnreadableTable(`The table has ${rows.length} examples; this learner takes at most ${most}.`);
  }
  return { x: rows.map((row) => row.slice(0, -1)), y: rows.map((row) => row.at(-1)) };
}

export const asTable = ({ x, y }) => x.map((each, t) => [...each, y[t]].join(",")).join("\n");
