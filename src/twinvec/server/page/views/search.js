// Search by meaning, with the words that bring a text near the query.

import { choice, element } from "../dom.js";
import { Listing } from "../listing.js";
import { say } from "../words.js";
import { scoreOf } from "./pairs.js";

const LEVELS = 6;

export const search = {
  least: 1,

  controls(state, { collections, change }) {
    const input = element("input", { id: "query", type: "search", value: state.query, placeholder: say("queryPlaceholder"), autocomplete: "off", enterkeyhint: "search" });
    input.addEventListener("input", () => change({ query: input.value }, { isTyped: true }));
    const field = element("label", { class: "control wide" }, element("span", {}, say("query")), input);
    if (!collections.length) return [field];
    const options = [["", say("ownTexts")], ...collections.map((name) => [name, name])];
    return [field, choice(say("within"), options, state.collection, (collection) => change({ collection }))];
  },

  request(state, { texts, limits }) {
    if (!state.query.trim()) return say("needQuery");
    const within = state.collection ? { collection: state.collection } : { texts: texts.slice(0, limits.texts) };
    return { path: "/twinvec/search", body: { query: state.query.trim(), k: 10, ...within } };
  },

  show(answer) {
    const most = Math.max(...answer.hits.flatMap((hit) => counted(hit).map(([, , share]) => share)), 0);
    const items = answer.hits.map((hit) => ({ ...hit, share: Math.max(hit.score, 0), texts: [{ text: hit.text, marks: strengths(hit, most) }] }));
    const list = element("ol", { class: "results" }, ...items.map((hit) => element("li", {}, scoreOf(hit.score, hit.share), element("p", { class: "hit" }, ...marked(hit, most)))));
    const note = element("p", { class: "note" }, answer.note ?? say("searchNote"));
    const table = [[say("score"), "row", "text"], ...items.map((hit) => [hit.score, hit.row === undefined ? hit.id : hit.row + 1, hit.text])];
    return { content: [list, note], picture: new Listing(items), table };
  },
};

// The words with letters or digits; marks of punctuation would say little.
function counted({ text, words = [] }) {
  return words.filter(([start, end]) => /[\p{L}\p{N}]/u.test(text.slice(start, end)));
}

// The words of a hit with a strength of 0 to 1, from the least share in it to the most of all hits.
function strengths(hit, most) {
  const words = counted(hit);
  const least = Math.max(Math.min(...words.map(([, , share]) => share), most), 0);
  return words.map(([start, end, share]) => [start, end, most > least ? Math.max((share - least) / (most - least), 0) : 0, share]);
}

// The text with its words marked.
function marked(hit, most) {
  const parts = [];
  let at = 0;
  for (const [start, end, strength, share] of strengths(hit, most)) {
    const level = Math.round(LEVELS * strength);
    if (!level || start < at) continue;
    parts.push(hit.text.slice(at, start), element("mark", { class: `add-${level}`, title: share.toFixed(3) }, hit.text.slice(start, end)));
    at = end;
  }
  return [...parts, hit.text.slice(at)];
}
