// Files to take away: a table as CSV, the server's answer as JSON, the picture as PNG.

import { themed } from "./colors.js";
import { FONT, wrapped } from "./dom.js";

const WIDTH = 1200, EDGE = 48, SCALE = 2;

export function saveCsv(name, rows) {
  const content = rows.map((row) => row.map(quoted).join(",")).join("\r\n");
  save(`${name}.csv`, new Blob(["\ufeff", content, "\r\n"], { type: "text/csv" })); // the mark helps spreadsheets
}

// A cell that a spreadsheet would take for a formula starts with an apostrophe.
function quoted(value) {
  const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveJson(name, content) {
  save(`${name}.json`, new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }));
}

// A picture for slides: a title, a line below it, and the view, on the background of the page.
export async function savePng(name, { title, below, picture }) {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const inner = WIDTH - 2 * EDGE;
  context.font = `16px ${FONT}`;
  const lines = below.flatMap((line) => wrapped(context, line, inner));
  const top = EDGE + 40 + lines.length * 24 + 18;
  const size = picture.size(context, inner);
  const width = Math.max(WIDTH, size.width + 2 * EDGE);
  canvas.width = width * SCALE;
  canvas.height = Math.ceil(top + size.height + EDGE) * SCALE;
  context.scale(SCALE, SCALE);
  context.fillStyle = themed("paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.textBaseline = "alphabetic";
  context.fillStyle = themed("ink");
  context.font = `650 30px ${FONT}`;
  context.fillText(title, EDGE, EDGE + 24);
  context.fillStyle = themed("muted");
  context.font = `16px ${FONT}`;
  lines.forEach((line, row) => context.fillText(line, EDGE, EDGE + 58 + row * 24));
  context.translate(EDGE, top);
  picture.paint(context, inner);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  save(`${name}.png`, blob);
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
