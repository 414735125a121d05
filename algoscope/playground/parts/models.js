// Models of the page: those that Python embedded, and those that a user drops on it.
//
// A model is { name, kind, dim, maxExamples, config, transformer, readouts, program }:
//   kind      "trained" or "compiled"
//   config    its config.json, as an object
//   readouts  null, or { center, weights, offset }: after layer ℓ, at a query's token,
//             ŷ = offset + weights[ℓ]ᵀ (h − center[ℓ])
//   program   null, or what the step-through of a compiled transformer shows

import { DamagedFile, readSafetensors } from "./safetensors.js";
import { Transformer, encode } from "./transformer.js";

export const LONGEST_NAME = 60;

async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Return a model that Python embedded: its weights are base64 of gzipped safetensors.
export async function loadEmbedded(payload) {
  return makeModel(payload.name, payload.config, await unpack(payload.weights), payload);
}

// Return a model from the text of its config.json and the bytes of its weights.
export function loadDropped(configText, weights, taken) {
  let config;
  try {
    config = JSON.parse(configText);
  } catch {
    throw new DamagedFile("config.json is not JSON.");
  }
  if (config === null || typeof config !== "object" || Array.isArray(config)) {
    throw new DamagedFile("config.json is not a JSON object.");
  }
  const given = typeof config.name === "string" && config.name ? config.name : "your model";
  let name = given.slice(0, LONGEST_NAME);
  for (let copy = 2; taken(name); copy++) name = `${given.slice(0, LONGEST_NAME)} (${copy})`;
  const kind = config.construction || config.operands ? "compiled" : "trained";
  return makeModel(name, config, weights, { kind });
}

function makeModel(name, config, weights, { kind, readouts = null, program = null }) {
  const transformer = new Transformer(config, readSafetensors(weights));
  const { dim, maxExamples } = transformer;
  return { name, kind, dim, maxExamples, config, transformer, readouts, program };
}

// Run a model on the examples; the answer at xᵢ depends on the examples before it only.
export function forward(model, x, y, options = {}) {
  const { transformer, dim } = model;
  const run = transformer.run(encode(x, y, dim), options);
  const predictions = run.output.filter((_, t) => t % 2 === 0);
  return { predictions, hidden: run.hidden, attention: run.attention };
}
