// Reader of safetensors: eight bytes with the size of a JSON header, the header, the data.
// Every offset is checked against the file before a number is read. Numbers are widened
// to float64, in which the forward pass computes.

const MOST_HEADER_BYTES = 1_000_000;
const BYTES = { F32: 4, F64: 8 };

export class DamagedFile extends Error {}

// Return the tensors by name: { shape, dtype, values }.
export function readSafetensors(buffer) {
  const fail = (problem) => {
    throw new DamagedFile(`The weights are not a whole safetensors file: ${problem}.`);
  };
  if (buffer.byteLength < 8) fail(`it has ${buffer.byteLength} bytes`);
  const view = new DataView(buffer);
  const size = Number(view.getBigUint64(0, true));
  if (size > MOST_HEADER_BYTES || 8 + size > buffer.byteLength) {
    fail("its header is longer than the file");
  }
  let header;
  try {
    const text = new TextDecoder("utf-8", { fatal: true });
    header = JSON.parse(text.decode(new Uint8Array(buffer, 8, size)));
  } catch {
    fail("its header is not JSON");
  }
  if (header === null || typeof header !== "object" || Array.isArray(header)) {
    fail("its header is not a JSON object");
  }
  const tensors = new Map();
  let room = buffer.byteLength - 8 - size;
  for (const [name, about] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const tensor = readTensor(buffer, 8 + size, name, about, fail);
    room -= tensor.values.length * BYTES[tensor.dtype];
    if (room < 0) fail("its tensors overlap");
    tensors.set(name, tensor);
  }
  return tensors;
}

function readTensor(buffer, start, name, about, fail) {
  const shown = JSON.stringify(name.slice(0, 40));
  if (about === null || typeof about !== "object") fail(`${shown} is not described`);
  const { dtype, shape, data_offsets: offsets } = about;
  if (!Object.hasOwn(BYTES, dtype)) fail(`${shown} is neither F32 nor F64`);
  const isSize = (each) => Number.isSafeInteger(each) && each >= 0;
  if (!Array.isArray(shape) || !shape.every(isSize)) fail(`${shown} has no shape`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize)) {
    fail(`${shown} has no place in it`);
  }
  const [from, to] = offsets;
  const count = shape.reduce((product, each) => product * each, 1);
  if (to - from !== count * BYTES[dtype]) fail(`${shown} has another size than its shape`);
  if (start + to > buffer.byteLength) fail(`${shown} lies outside of it`);
  const view = new DataView(buffer, start + from, to - from);
  const values = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    values[i] = dtype === "F32" ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true);
    if (!Number.isFinite(values[i])) fail(`${shown} holds a number that is not finite`);
  }
  return { shape, dtype, values };
}
