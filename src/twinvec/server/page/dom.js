// Small helpers: elements, the tip near the pointer, labeled controls, and text on a canvas.

export const FONT = '"Inter", system-ui, -apple-system, "Segoe UI", "Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans KR", "Noto Sans CJK KR", sans-serif';

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// A labeled list of choices: options are [value, name] pairs.
export function choice(label, options, value, change, kind = "") {
  const select = element("select", { onchange: () => change(select.value) });
  for (const [each, name] of options) select.append(element("option", { value: each, selected: each === value }, name));
  return element("label", { class: `control ${kind}` }, element("span", {}, label), select);
}

// Options for choosing one of the texts by its row.
export function textOptions(texts) {
  return texts.slice(0, 500).map((text, row) => [String(row), `${row + 1}. ${text.length > 90 ? `${text.slice(0, 88)}…` : text}`]);
}

// The row that the state names, or the nearest one there is.
export function rowOf(value, texts) {
  const row = Number.parseInt(value, 10);
  return Math.min(Math.max(Number.isNaN(row) ? 0 : row, 0), Math.max(texts.length - 1, 0));
}

// Shows lines in a tip above a point of the page; screen readers hear them if the keyboard asked.
export function showTip(lines, x, y, isSpoken = false) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...lines.map(([text, kind = ""]) => element("p", { class: kind }, text)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(x - width / 2, 8), document.documentElement.clientWidth - width - 8);
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(y - height - 12 < 4 ? y + 18 : y - height - 12) + scrollY}px`;
  if (isSpoken) announce(lines.map(([text]) => text).join(", "));
}

export function hideTip() {
  document.getElementById("tip").hidden = true;
}

export function announce(text) {
  document.getElementById("said").textContent = text;
}

// A canvas that is painted again whenever its width changes. paint(context, width) returns the height it used.
export function figure(picture, attributes) {
  const canvas = element("canvas", { tabindex: "0", role: "application", ...attributes });
  const holder = element("div", { class: "figure" }, canvas);
  let before = 0;
  const draw = () => {
    const width = holder.clientWidth;
    if (!width || width === before) return;
    before = width;
    paintOn(canvas, picture, width, Math.max(devicePixelRatio || 1, 1));
  };
  new ResizeObserver(draw).observe(holder);
  holder.redraw = () => ((before = 0), draw());
  return { holder, canvas };
}

export function paintOn(canvas, picture, width, scale) {
  const size = picture.size(canvas.getContext("2d"), width);
  canvas.width = Math.round(size.width * scale);
  canvas.height = Math.round(size.height * scale);
  canvas.style.width = `${size.width}px`;
  canvas.style.height = `${size.height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  picture.paint(context, width);
}

// The text, shortened to a width with an ellipsis.
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low).trimEnd()}…` : "";
}

// The text broken into lines of at most a width.
export function wrapped(context, text, width) {
  const lines = [];
  let line = "";
  for (const word of text.split(/(?<=\s)/)) {
    if (line && context.measureText((line + word).trimEnd()).width > width) lines.push(line.trimEnd()), (line = "");
    line += word;
  }
  return [...lines, line.trimEnd()].map((each) => fitted(context, each, width));
}
