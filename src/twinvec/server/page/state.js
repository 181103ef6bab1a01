// The state of the page, kept in the address behind '#', so that a link shows the same view.
// The part behind '#' is not sent to the server.

import { exampleOf } from "./examples.js";

export const DEFAULTS = {
  view: "matrix", model: "", example: "", query: "", collection: "", order: "given", k: "20", least: "", n: "", a: "0", b: "1",
};
const LONGEST = 24_000; // characters of texts in a link

export async function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) if (given.has(name)) state[name] = given.get(name);
  const packed = given.get("t");
  if (packed) return { ...state, example: "", texts: await unpacked(packed) };
  const example = exampleOf(state.example);
  return { ...state, query: state.query || (example?.query ?? ""), texts: example?.texts ?? [] };
}

// Writes the state into the address; returns false if the texts are too long for it.
export async function write(state, isNewEntry = false) {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(DEFAULTS)) if (state[name] !== value && state[name]) kept.set(name, state[name]);
  let fits = true;
  if (!state.example && state.texts.length) {
    const text = await packed(state.texts);
    fits = text.length <= LONGEST;
    if (fits) kept.set("t", text);
  }
  const hash = kept.size ? `#${kept}` : "";
  const address = location.pathname + location.search + hash;
  if (hash !== location.hash) history[isNewEntry ? "pushState" : "replaceState"](null, "", address);
  return fits;
}

async function packed(texts) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(texts.join("\n")));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(text) {
  try {
    const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const content = await through(new DecompressionStream("deflate-raw"), bytes);
    return new TextDecoder().decode(content).split("\n");
  } catch {
    return []; // a damaged link shows the empty page
  }
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
