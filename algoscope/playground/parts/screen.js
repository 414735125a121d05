// The first screen from left to right, data → learner → answer, and the panels below it.

import { make } from "./dom.js";
import { sentence } from "./distances.js";
import { drawWaiting } from "./inside.js";
import { PANELS } from "./panels.js";
import { mountAnswer } from "./views/answer.js";
import { mountData } from "./views/data.js";
import { acceptDrops, openButton } from "./views/files.js";
import { mountLearner } from "./views/learner.js";
import { mountTour, tourButton } from "./views/tour.js";

export function mountScreen(app) {
  const column = (id, title, about, mount) => {
    const section = make("section", { id, "aria-labelledby": `${id}-title` },
      make("h2", { id: `${id}-title` }, title, " ", make("span", {}, about)));
    mount(section, app);
    return section;
  };
  const line = make("p", { id: "sentence", "aria-live": "polite" });
  const columns = make("div", { id: "columns" });
  document.getElementById("screen").append(
    make("header", {}, make("h1", {}, "algoscope ", make("span", {}, "playground")), toolbar(app)),
    line, make("p", { id: "status", role: "status" }), columns,
  );
  columns.append(column("data", "Data", "the examples that it reads", mountData),
    column("learner", "Learner", "its function over the data", mountLearner),
    column("answer", "Answer", "which algorithm is it?", mountAnswer));
  mountTour(app);
  acceptDrops(app);
  const tell = () => {
    const parts = app.learner.problem ? [app.learner.problem] : sentence(app, app.distances);
    line.replaceChildren(...parts.map((part) => (
      typeof part === "string" ? part : make("strong", { class: `of-${part.id}` }, part.text))));
    if (!app.isMoving) app.say("");
  };
  app.subscribe(tell);
  tell();
}

function toolbar(app) {
  const undo = make("button", { id: "undo", type: "button", onclick: () => app.undo() }, "Undo");
  const redo = make("button", { id: "redo", type: "button", onclick: () => app.redo() }, "Redo");
  const copy = make("button", { id: "copy", type: "button", onclick: () => copyAddress(app) }, "Copy link");
  const check = () => {
    undo.disabled = !app.history.canUndo;
    redo.disabled = !app.history.canRedo;
  };
  app.subscribe(check);
  check();
  addEventListener("keydown", (event) => {
    const editing = event.target instanceof Element && event.target.matches("input[type=number], textarea");
    if (!(event.ctrlKey || event.metaKey) || editing) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") {
      event.preventDefault();
      if (key === "y" || event.shiftKey) app.redo();
      else app.undo();
    }
  });
  return make("div", { class: "toolbar", role: "group", "aria-label": "Page" },
    undo, redo, copy, openButton(app), tourButton(app));
}

async function copyAddress(app) {
  if (location.protocol === "about:") {
    app.say("A frame has no address of its own: write the page to a file to share links.");
    return;
  }
  try {
    await navigator.clipboard.writeText(location.href);
    app.say("The link is copied. It opens this page in this state.");
  } catch {
    app.say("The link is in the address bar: it holds the state of this page.");
  }
}

export function mountPanels(app, place) {
  for (const { id, title, module } of PANELS) {
    const body = make("div", { class: "panel" });
    const summary = make("summary", {}, title);
    const details = make("details", { id }, summary, body);
    const mountOnce = () => {
      if (details.open && !body.childElementCount) module.mount(body, app);
    };
    // The state opens and closes panels, at once: the event of <details> comes later.
    summary.addEventListener("click", (event) => {
      event.preventDefault();
      const isOpen = (each) => each === id ? !details.open : app.state.open.includes(each);
      app.update({ open: PANELS.map((each) => each.id).filter(isOpen) });
    });
    details.addEventListener("toggle", () => { // a search in the page opens panels too
      mountOnce();
      const open = [...place.children].filter((each) => each.open).map((each) => each.id);
      if (String(open) !== String(app.state.open)) app.update({ open });
    });
    const follow = () => {
      const wanted = app.state.open.includes(id);
      if (details.open !== wanted) details.open = wanted;
    };
    app.subscribe(follow);
    place.append(details);
    follow();
  }
  // Paper is white: what is painted on canvases is painted anew for it, before it is printed.
  const paintFor = (paper) => () => {
    document.documentElement.classList.toggle("printed", paper);
    app.tell();
    drawWaiting(app);
  };
  addEventListener("beforeprint", paintFor(true));
  addEventListener("afterprint", paintFor(false));
}
