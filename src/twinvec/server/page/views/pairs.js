// The most similar pairs of texts, best first.

import { choice, element } from "../dom.js";
import { Listing } from "../listing.js";
import { say } from "../words.js";

export const pairs = {
  least: 2,

  controls: (state, { change }) => [
    choice(say("howMany"), ["20", "50", "200"].map((k) => [k, k]), state.k, (k) => change({ k })),
    choice(say("atLeast"), [["", "–"], ...["0.5", "0.6", "0.7", "0.8", "0.9"].map((least) => [least, least])], state.least, (least) => change({ least })),
  ],

  request: (state, { texts, limits }) => ({
    path: "/twinvec/pairs",
    body: { texts: texts.slice(0, limits.texts), k: Number(state.k) || 20, ...(state.least && { threshold: Number(state.least) }) },
  }),

  show(answer, state, { texts, change }) {
    const items = answer.pairs.map(({ left, right, score }) => ({ left, right, score, share: Math.max(score, 0), texts: [{ text: texts[left] }, { text: texts[right] }] }));
    const list = element("ol", { class: "results" });
    for (const { left, right, score, share } of items) {
      const open = () => change({ view: "explain", a: String(left), b: String(right) });
      list.append(
        element(
          "li", {},
          scoreOf(score, share),
          element("div", { class: "both" }, numbered(left, texts), numbered(right, texts)),
          element("button", { type: "button", class: "quiet small", "aria-label": say("whyLabel", left + 1, right + 1), onclick: open }, say("why")),
        ),
      );
    }
    const table = [[say("score"), "A", "B", say("textA"), say("textB")], ...items.map((each) => [each.score, each.left + 1, each.right + 1, texts[each.left], texts[each.right]])];
    const content = items.length ? list : element("p", { class: "empty" }, say("noPairs"));
    return { content: [content], picture: new Listing(items), table };
  },
};

function numbered(row, texts) {
  return element("p", {}, element("span", { class: "row" }, String(row + 1)), texts[row]);
}

// A score with a bar; its length is one of 21 classes, since the page has no inline styles.
export function scoreOf(score, share) {
  const step = Math.round(Math.min(Math.max(share, 0), 1) * 20);
  return element("div", { class: "score" }, element("span", {}, score.toFixed(3)), element("span", { class: "track", "aria-hidden": "true" }, element("span", { class: `bar w${step}` })));
}
