// The answer: how far the learner is from each algorithm, now and over n, and whether the
// data are like those that it was made for.

import { distancesOverN } from "../distances.js";
import { draw, make, shortNumber, slider, swatch } from "../dom.js";
import { toggleShown } from "../learners.js";
import { TEXTBOOK } from "../predictors.js";
import { insideTraining, madeFor } from "../shifts.js";

const LOWEST = 1e-6, HIGHEST = 10; // the ends of the logarithmic scales
const share = (distance) => Math.min(Math.max(Math.log(distance / LOWEST) / Math.log(HIGHEST / LOWEST), 0), 1);
const WAIT = 120; // milliseconds after the last change until distances over n are computed

export function mountAnswer(place, app) {
  place.append(
    make("p", { class: "quiet" }, "Distance of its predictions to those of each algorithm (mean square / d, logarithmic scale). Checked ones are drawn."),
    bars(app), overN(app), training(app),
  );
}

// One row per algorithm: draw it or not, its parameter, its distance as a bar.
function bars(app) {
  const list = make("ul", { id: "bars" });
  const rows = TEXTBOOK.map(({ id, short, name, parameter }) => {
    const box = make("input", { type: "checkbox", id: `show-${id}`, onchange: () => toggleShown(app, id) });
    const bar = make("span", { class: `bar of-${id}` });
    const value = make("span", { class: "number", id: `distance-${id}` });
    const control = parameter && slider({
      ...parameter, label: parameter.symbol, log: !parameter.whole, show: shortNumber, id: `parameter-${id}`,
      onmove: (number, lasting) => app.update({ parameter: { ...app.state.parameter, [id]: number } }, { lasting }),
    });
    control?.element.querySelector("input").setAttribute("aria-label", parameter.label);
    list.append(make("li", { "data-id": id }, make("label", { title: `Draw ${name}` }, box, swatch(`of-${id}`), make("span", {}, short)),
      make("span", { class: "track", "aria-hidden": "true" }, bar), value, control?.element));
    return { id, box, bar, value, control };
  });
  const follow = () => {
    const found = app.distances?.found ?? [];
    const nearest = Math.min(...found.map(({ distance }) => distance));
    for (const { id, box, bar, value, control } of rows) {
      box.checked = app.state.shown.includes(id);
      control?.set(app.state.parameter[id]);
      const distance = found.find((each) => each.id === id)?.distance;
      bar.style.width = distance === undefined ? "0" : `${100 * share(distance)}%`;
      value.textContent = distance === undefined ? "–" : distance > 0 && distance < LOWEST ? "< 10⁻⁶" : shortNumber(distance);
      value.classList.toggle("nearest", distance === nearest);
    }
  };
  app.subscribe(follow);
  follow();
  return list;
}

// Distances after 1, 2, …, n examples, as lines on a logarithmic scale.
function overN(app) {
  const size = { width: 320, height: 150, left: 40, right: 8, top: 8, bottom: 30 };
  const svg = draw("svg", { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", id: "over-n" });
  const toY = (distance) => size.height - size.bottom - share(distance) * (size.height - size.top - size.bottom);
  const follow = () => {
    if (app.learner.problem || !app.state.x.length) {
      svg.replaceChildren();
      return;
    }
    const rows = distancesOverN(app, app.learner);
    const toX = (n) => size.left + ((n - 0.5) / rows.length) * (size.width - size.left - size.right);
    const parts = [[1e-6, "10⁻⁶"], [1e-4, "10⁻⁴"], [1e-2, "10⁻²"], [1, "1"]].flatMap(([at, name]) => [
      draw("line", { class: "grid", x1: size.left, x2: size.width - size.right, y1: toY(at), y2: toY(at) }),
      draw("text", { x: size.left - 5, y: toY(at) + 4, "text-anchor": "end" }, name),
    ]);
    const every = Math.ceil(rows.length / 10);
    rows.forEach((_, i) => {
      if (i % every === 0) parts.push(draw("text", { x: toX(i + 1), y: size.height - 16, "text-anchor": "middle" }, String(i + 1)));
    });
    parts.push(draw("text", { x: (size.width + size.left) / 2, y: size.height - 2, "text-anchor": "middle" }, "number of examples"));
    for (const { id } of TEXTBOOK) {
      const at = rows.map((row) => row.find((each) => each.id === id).distance);
      const d = at.map((distance, i) => `${i ? "L" : "M"}${toX(i + 1).toFixed(1)} ${toY(distance).toFixed(1)}`).join("");
      parts.push(draw("path", { class: `line of-${id}`, d }));
      at.forEach((distance, i) => parts.push(draw("circle", { class: `dot of-${id}`, cx: toX(i + 1), cy: toY(distance), r: 2.5 },
        draw("title", {}, `${TEXTBOOK.find((each) => each.id === id).short} after ${i + 1}: ${shortNumber(distance)}`))));
    }
    svg.replaceChildren(...parts);
    svg.setAttribute("aria-label", `Distances after 1 to ${rows.length} examples`);
  };
  let waiting = 0;
  app.subscribe(() => {
    clearTimeout(waiting);
    if (app.isMoving) waiting = setTimeout(follow, WAIT);
    else follow();
  });
  follow();
  return make("figure", {}, make("figcaption", { class: "quiet" }, "The same after 1, 2, … examples"), svg);
}

// Is this what the model was made for? Each aspect with a mark and a sentence.
function training(app) {
  const title = make("h3", {}), list = make("ul", { id: "training" }), made = make("p", { class: "quiet" });
  const follow = () => {
    const checks = insideTraining(app.model, app.state.x, app.state.y);
    const about = madeFor(app.model);
    const outside = checks.filter(({ ok }) => !ok).length;
    title.textContent = !about ? "A formula, not trained" : !checks.length ? "What it was made for"
      : outside ? "Outside what it was made for" : "Inside what it was made for";
    title.className = outside ? "outside" : checks.length ? "inside" : "";
    made.textContent = about ? `${app.model.name}: ${about.words}.` : "It computes the same rule on any data.";
    list.replaceChildren(...checks.map(({ ok, text }) => make("li", { class: ok ? "ok" : "not" },
      make("span", { class: "mark" }, ok ? "✓" : "✗", make("span", { class: "unseen" }, ok ? " inside: " : " outside: ")), text)));
  };
  app.subscribe(follow);
  follow();
  return make("div", { id: "made-for" }, title, list, made);
}
