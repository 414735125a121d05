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

const LONGEST_NAME = 60, MOST_CONFIG = 1_000_000, MOST_INPUTS = 64;

// A name that can be shown and that no other learner of the page has.
export function freeName(given, isTaken) {
  const short = [...given.toWellFormed().trim()].slice(0, LONGEST_NAME).join("") || "your model";
  let name = short;
  for (let copy = 2; isTaken(name); copy++) name = `${short} (${copy})`;
  return name;
}

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
export function loadDropped(configText, weights, isTaken) {
  if (configText.length > MOST_CONFIG) throw new DamagedFile("config.json is too long for a model's.");
  let config;
  try {
    config = JSON.parse(configText);
  } catch {
    throw new DamagedFile("config.json is not JSON.");
  }
  if (config === null || typeof config !== "object" || Array.isArray(config)) {
    throw new DamagedFile("config.json is not a JSON object.");
  }
  const name = freeName(typeof config.name === "string" ? config.name : "", isTaken);
  const kind = config.construction || config.operands ? "compiled" : "trained";
  const model = makeModel(name, config, weights, { kind });
  if (model.dim > MOST_INPUTS) throw new DamagedFile(`The model has ${model.dim} inputs; this page takes at most ${MOST_INPUTS}.`);
  return model;
}

// Return the read-outs of a model from the bytes of its readouts.safetensors.
export function readReadOuts(bytes, { numLayers, hidden }) {
  const tensors = readSafetensors(bytes);
  const take = (name, shape) => {
    const tensor = tensors.get(name);
    if (!tensor || String(tensor.shape) !== String(shape)) throw new DamagedFile("The read-outs are not those of this model.");
    return tensor.values;
  };
  const rows = (name) => {
    const values = take(name, [numLayers + 1, hidden]);
    return Array.from({ length: numLayers + 1 }, (_, layer) => values.subarray(layer * hidden, (layer + 1) * hidden));
  };
  return { center: rows("center"), weights: rows("weights"), offset: take("offset", [])[0] };
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
