// Elements. Text is always set as text, never as markup, so that no name can act.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

export const make = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const draw = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

// The key of a line: a short piece of it, as its class draws it.
export const swatch = (kind) => draw("svg", { class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true" },
  draw("path", { class: `line ${kind}`, d: "M1 4L21 4" }));

// A labelled slider: { element, set(value) }. With `log`, equal steps are equal factors.
export function slider({ label, low, high, step = 0.01, log = false, whole = false, show, onmove, id }) {
  const to = log ? Math.log10 : (value) => value;
  const from = log ? (place) => Number((10 ** place).toPrecision(3)) : (place) => place;
  const input = make("input", {
    type: "range", min: to(low), max: to(high), step: whole ? 1 : log ? 0.01 : step, id,
  });
  const value = make("output", { class: "number" });
  const element = make("label", { class: "slider" }, make("span", {}, label), input, value);
  const tell = (number) => {
    value.textContent = show(number);
    input.setAttribute("aria-valuetext", show(number));
  };
  const move = (lasting) => {
    const number = from(Number(input.value));
    tell(number);
    onmove(number, lasting);
  };
  input.addEventListener("input", () => move(false));
  input.addEventListener("change", () => move(true));
  return {
    element,
    set(number) {
      if (document.activeElement !== input || from(Number(input.value)) !== number) {
        input.value = String(to(number));
      }
      tell(number);
    },
  };
}

// A number with about two digits, without an exponent where that is readable.
export function shortNumber(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "∞";
  if (size === 0) return "0";
  if (size < 1e-6) return "less than 0.000001";
  if (size >= 1e5) return value.toExponential(1).replace("e+", "·10^");
  return String(Number(value.toPrecision(size >= 100 ? 3 : 2)));
}

export const signed = (value) => value.toFixed(2).replace("-", "−");
