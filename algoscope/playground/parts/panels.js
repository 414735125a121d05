// The panels below the first screen, each opened by one click.
//
// A panel is a module of parts/ that exports mount(element, app). It is mounted when it is
// first opened. To add one: its file, an import, and a line in PANELS.
//
// `app` (see app.js) offers:
//   app.models          Map from name to model (see models.js)
//   app.state           the state (see state.js), with x and y, the examples as the
//                       learner sees them, after "Break it"
//   app.model           the chosen model, or null where a textbook predictor is chosen
//   app.update(changes, { lasting: true })    change fields of the state; while a gesture
//                       is under way, lasting: false keeps it out of undo
//   app.subscribe(listener)    called with the state after every change; returns a
//                       function that ends it
//   app.forward(name, x, y, { edit, attention })    one pass: { predictions, hidden,
//                       attention }; edit(layer, hidden) may return other hidden states
//   app.say(sentence)   show a sentence, also to screen readers

import * as attention from "./attention.js";
import * as depth from "./depth.js";
import * as patch from "./patch.js";
import * as watch from "./watch.js";

export const PANELS = [
  { id: "depth", title: "Depth: what it would answer after each layer", module: depth },
  { id: "watch", title: "Watch it run: SGD and ridge regression, written into weights", module: watch },
  { id: "attention", title: "Attention and hidden states", module: attention },
  { id: "patch", title: "Patch by hand: swap hidden states", module: patch },
];
