// Files that a user drops or opens: config.json with model.safetensors, and its read-outs if
// there are any, or a table.

import { make } from "../dom.js";
import { loadDropped, readReadOuts } from "../models.js";
import { DamagedFile } from "../safetensors.js";
import { useTable } from "./data.js";

const MOST_BYTES = 300e6;

export function openButton(app) {
  const input = make("input", {
    type: "file", multiple: true, hidden: true, id: "files", accept: ".json,.safetensors,.csv,.txt",
    onchange: async () => {
      await useFiles(app, [...input.files]);
      input.value = "";
    },
  });
  const press = () => input.click();
  return make("span", {}, input, make("button", {
    type: "button", id: "open", onclick: press, title: "config.json with model.safetensors (and readouts.safetensors), or a table as CSV",
  }, "Open a model"));
}

export function acceptDrops(app) {
  const over = (on) => document.body.classList.toggle("over", on);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
  addEventListener("drop", async (event) => {
    event.preventDefault();
    over(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length) await useFiles(app, files);
    else if (event.dataTransfer?.getData("text")) useTable(app, event.dataTransfer.getData("text"));
  });
  addEventListener("paste", (event) => {
    if (event.target instanceof Element && event.target.matches("input, textarea")) return;
    const text = event.clipboardData?.getData("text") ?? "";
    if (text.trim()) useTable(app, text);
  });
}

// Use dropped files; whatever is wrong with them is said in one sentence.
export async function useFiles(app, files) {
  const ending = (end, some = files) => some.find((file) => file.name.toLowerCase().endsWith(end));
  const readouts = ending("readouts.safetensors");
  const config = ending("config.json") ?? ending(".json");
  const weights = ending("model.safetensors") ?? ending(".safetensors", files.filter((file) => file !== readouts));
  const table = files.find((file) => /\.(csv|tsv|txt)$/i.test(file.name));
  try {
    if (files.some((file) => file.size > MOST_BYTES)) throw new DamagedFile("The file is larger than 300 MB.");
    if (config && weights) {
      const model = loadDropped(await config.text(), await weights.arrayBuffer(), (name) => app.dimOf(name) !== null);
      if (readouts) model.readouts = readReadOuts(await readouts.arrayBuffer(), model.transformer);
      app.addModel(model);
    } else if (config || weights) {
      throw new DamagedFile("A model is two files: drop config.json and model.safetensors together.");
    } else if (table) {
      useTable(app, await table.text());
    } else {
      throw new DamagedFile("Drop config.json with model.safetensors, or a table as .csv.");
    }
  } catch (error) {
    if (error instanceof DamagedFile) app.say(error.message);
    else if (error instanceof DOMException || error instanceof RangeError) app.say("The browser cannot read these files.");
    else throw error;
  }
}
