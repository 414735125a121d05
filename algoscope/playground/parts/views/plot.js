// The plot: examples to drag, add, delete and reorder over the learner's function.
//
// Pointer: drag moves an example, a click beside them adds one. Keyboard, on an example:
// arrows move it (with Shift further), + and − change its label where both arrows are
// taken by inputs, Page Up and Page Down change its place in the order, Delete removes it.

import { draw, make, signed } from "../dom.js";
import { learn } from "../learners.js";
import { curveFrame, drawCurves } from "./curve.js";
import { addExample, moveExample, placeExample, removeExample } from "./data.js";
import { colorKey, colorOf, drawField, fieldFrame, fullColor, isLight, paperColor } from "./field.js";
import { MARGIN, axes } from "./frame.js";

const MOVED = 4; // pixels after which a press is a drag
const RADIUS = 10, REST = 150; // milliseconds

export function mountPlot(place, app) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const below = draw("g", { "clip-path": "url(#plot-clip)" }), rest = draw("g");
  const clip = draw("rect", {});
  const points = draw("g", { id: "points" }), query = draw("g", {
    id: "query", tabindex: 0, role: "slider", "aria-label": "Query",
  }, draw("path", { d: "M0 -9L8 0L0 9L-8 0Z" }), draw("text", { y: 4, "text-anchor": "middle" }, "?"));
  const svg = draw("svg", { role: "group", "aria-label": "Examples and the learner's function" },
    draw("defs", {}, draw("clipPath", { id: "plot-clip" }, clip)), below, rest, points, query);
  const colors = make("p", { class: "quiet", id: "colors" });
  place.append(canvas, svg, colors);
  let frame = null;

  const render = (isFine) => {
    const width = place.clientWidth || 560;
    if (!frame || !app.isMoving || frame.width !== width || frame.dim !== app.dim) {
      frame = (app.dim === 2 ? fieldFrame : curveFrame)(app, width);
      frame.dim = app.dim;
    }
    svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    Object.assign(svg.style, { width: `${frame.width}px`, height: `${frame.height}px` });
    for (const [name, value] of Object.entries({ x: MARGIN.left, y: MARGIN.top, ...frame.inner })) clip.setAttribute(name, value);
    canvas.hidden = colors.hidden = app.dim !== 2;
    if (app.dim === 2) colors.replaceChildren(...colorKey(app, frame, paperColor()));
    const [across, up] = app.dim === 2 ? ["x₁", "x₂"] : [app.dim === 1 ? "x" : "x₁", "y"];
    rest.replaceChildren(axes(frame, across, up));
    below.replaceChildren(...(app.dim === 2 ? drawField(app, frame, canvas, isFine) : drawCurves(app, frame)));
    renderPoints(app, frame, points);
    renderQuery(app, frame, query);
  };
  let resting = 0; // in a gesture a field is coarse, until the pointer rests
  app.subscribe(() => {
    clearTimeout(resting);
    render(!app.isMoving);
    if (app.isMoving && app.dim === 2) resting = setTimeout(() => render(true), REST);
  });
  new ResizeObserver(() => { if (frame?.width !== place.clientWidth) render(true); }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => render(true));
  gestures(svg, app, () => frame);
  points.addEventListener("keydown", (event) => pressed(event, app));
  query.addEventListener("keydown", (event) => queryPressed(event, app));
  render(true);
}

// Update the examples in place: an element that is dragged or focused must stay.
function renderPoints(app, frame, group) {
  const { x, y } = app.state;
  const shown = app.dim <= 2 ? x.length : 0;
  while (group.children.length > shown) group.lastChild.remove();
  while (group.children.length < shown) {
    const number = group.children.length;
    group.append(draw("g", { class: "point", "data-index": number, tabindex: 0, role: "button" },
      draw("circle", { class: "touch", r: 20 }), draw("circle", { r: RADIUS }),
      draw("text", { y: 4, "text-anchor": "middle" }, String(number + 1))));
  }
  const paper = app.dim === 2 ? paperColor() : null;
  group.classList.toggle("colored", app.dim === 2);
  for (let i = 0; i < shown; i++) {
    const element = group.children[i];
    const [a, b] = app.dim === 2 ? x[i] : [x[i][0], y[i]];
    element.setAttribute("transform", `translate(${frame.toX(a).toFixed(1)} ${frame.toY(b).toFixed(1)})`);
    const names = app.dim === 2 ? `x ${x[i].map(signed).join(" and ")}` : `x ${signed(x[i][0])}`;
    element.setAttribute("aria-label", `Example ${i + 1}: ${names}, y ${signed(y[i])}`);
    const disc = element.children[1];
    if (paper) {
      const color = colorOf(y[i], fullColor(app, frame), paper);
      disc.style.fill = `rgb(${color.join(" ")})`;
      element.lastChild.style.fill = isLight(color) ? "#000" : "#fff";
    } else {
      disc.style.fill = "";
      element.lastChild.style.fill = "";
    }
  }
}

// The query: on the learner's curve for one input, anywhere in the field for two.
function renderQuery(app, frame, element) {
  const { query } = app.state;
  const answer = app.learner.problem ? 0 : Number(app.learner.ask([query])[0]);
  const [a, b] = app.dim === 2 ? query : [query[0], Math.min(Math.max(answer, -frame.top), frame.top)];
  element.setAttribute("transform", `translate(${frame.toX(a).toFixed(1)} ${frame.toY(b).toFixed(1)})`);
  element.setAttribute("aria-valuenow", String(query[0]));
  element.setAttribute("aria-valuetext", `x ${query.map(signed).join(" and ")}, answer ${signed(answer)}`);
}

function gestures(svg, app, frameNow) {
  let held = null;
  const where = (event) => {
    const box = svg.getBoundingClientRect(), frame = frameNow();
    const within = (value, limit) => Math.min(Math.max(value, -limit), limit);
    return [within(frame.fromX(event.clientX - box.left), frame.right), within(frame.fromY(event.clientY - box.top), frame.top)];
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || held) return;
    const query = event.target.closest("#query");
    const point = !query && event.target.closest(".point") ? nearestPoint(svg, event) : null;
    held = {
      id: event.pointerId, from: [event.clientX, event.clientY], moved: false,
      index: point ? Number(point.dataset.index) : null, query: Boolean(query),
    };
    if (point || query) {
      svg.setPointerCapture(event.pointerId);
      (point ?? query).focus();
      event.preventDefault();
    }
  });
  // A finger on an example drags it; anywhere else it scrolls the page.
  svg.addEventListener("touchstart", (event) => {
    if (event.target.closest(".point, #query")) event.preventDefault();
  }, { passive: false });
  const follow = (event, lasting) => {
    const [a, b] = where(event);
    const { x, y, query } = app.state;
    if (held.query) app.update({ query: app.dim === 2 ? [a, b] : [a, ...query.slice(1)] }, { lasting });
    else if (app.dim === 2) placeExample(app, held.index, [a, b], y[held.index], lasting);
    else placeExample(app, held.index, [a, ...x[held.index].slice(1)], b, lasting);
  };
  svg.addEventListener("pointermove", (event) => {
    if (!held || event.pointerId !== held.id) return;
    const far = Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]);
    held.moved ||= far > MOVED;
    if (held.moved && (held.query || held.index !== null)) follow(event, false);
  });
  svg.addEventListener("pointerup", (event) => {
    if (!held || event.pointerId !== held.id) return;
    const wasFree = !held.query && held.index === null;
    if (wasFree && !held.moved) addAt(app, where(event));
    else if (held.moved && !wasFree) follow(event, true);
    held = null;
  });
  svg.addEventListener("pointercancel", () => { held = null; });
}

// Fingers are wide: of examples that lie close together, the nearest is meant.
function nearestPoint(svg, event) {
  const far = (each) => {
    const box = each.firstChild.getBoundingClientRect();
    return Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
  };
  return [...svg.querySelectorAll(".point")].reduce((a, b) => (far(b) < far(a) ? b : a));
}

// Add an example; with two inputs its label is what least squares would answer there.
function addAt(app, [a, b]) {
  if (app.dim > 2) return;
  if (app.dim === 1) addExample(app, [a], b);
  else addExample(app, [a, b], Number(learn(app, "ols", app.state.x, app.state.y).ask([[a, b]])[0]));
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function pressed(event, app) {
  const point = event.target.closest(".point");
  if (!point || event.ctrlKey || event.metaKey) return;
  const index = Number(point.dataset.index);
  const { x, y } = app.state;
  const step = event.shiftKey ? 0.5 : 0.1;
  const focus = (at) => document.querySelector(`#points [data-index="${at}"]`)?.focus();
  if (event.key in ARROWS) {
    const [a, b] = ARROWS[event.key];
    const two = app.dim === 2;
    const to = two ? [x[index][0] + a * step, x[index][1] + b * step] : [x[index][0] + a * step];
    placeExample(app, index, to, two ? y[index] : y[index] + b * step, true);
  } else if (event.key === "+" || event.key === "-") {
    placeExample(app, index, x[index], y[index] + (event.key === "+" ? step : -step), true);
  } else if (event.key === "PageUp" || event.key === "PageDown") {
    focus(moveExample(app, index, event.key === "PageUp" ? -1 : 1));
  } else if (event.key === "Delete" || event.key === "Backspace") {
    removeExample(app, index);
    focus(Math.min(index, app.state.x.length - 1));
  } else {
    return;
  }
  event.preventDefault();
}

function queryPressed(event, app) {
  if (!(event.key in ARROWS) || event.ctrlKey || event.metaKey) return;
  const [a, b] = ARROWS[event.key];
  const step = event.shiftKey ? 0.5 : 0.1;
  const query = [...app.state.query];
  query[0] += (app.dim === 2 ? a : a + b) * step;
  if (app.dim === 2) query[1] += b * step;
  app.update({ query });
  event.preventDefault();
}
