// The cosine of two texts, token by token.

import { diverging } from "../colors.js";
import { choice, element, rowOf, textOptions } from "../dom.js";
import { Grid, gridFigure } from "../grid.js";
import { say } from "../words.js";

const LEVELS = 6;

export const explain = {
  least: 2,

  controls(state, { texts, change }) {
    const [a, b] = [String(rowOf(state.a, texts)), String(rowOf(state.b, texts))];
    const swap = element("button", { type: "button", class: "quiet icon", "aria-label": say("swap"), title: say("swap"), onclick: () => change({ a: b, b: a }) }, "⇄");
    return [
      choice(say("textA"), textOptions(texts), a, (row) => change({ a: row }), "wide"),
      swap,
      choice(say("textB"), textOptions(texts), b, (row) => change({ b: row }), "wide"),
    ];
  },

  request(state, { texts, limits }) {
    const [left, right] = [state.a, state.b].map((row) => texts[rowOf(row, texts)].slice(0, limits.characters));
    return { path: "/twinvec/explain", body: { left, right } };
  },

  used: (n) => n,

  show(answer) {
    const { left, right, contributions, cosine } = answer;
    const [rows, columns] = [left, right].map((side) => side.tokens.map((each) => each.token));
    const most = Math.max(...contributions.flat().map(Math.abs), 1e-9);
    const largest = Math.max(...[...left.tokens, ...right.tokens].map((each) => Math.abs(each.contribution)), 1e-9);
    const head = element("div", { class: "verdict" }, element("span", { class: "big" }, cosine.toFixed(3)), element("span", {}, say("cosine")));
    const content = [head, strip("A", left.tokens, largest), strip("B", right.tokens, largest)];
    const low = Math.min(0, ...contributions.flat());
    const grid = new Grid({
      rows, columns, values: contributions, domain: [low, most], color: (value) => diverging(value / most), digits: 3, isTurned: true, leastCell: 24, unit: say("contribution"),
    });
    if (rows.length && columns.length) {
      const shown = gridFigure(grid, {
        label: say("explainLabel", rows.length, columns.length),
        tip: (row, column) => [[`${rows[row]} · ${columns[column]}`], [contributions[row][column].toFixed(4), "number"]],
      });
      shown.classList.add("scrolls");
      content.push(shown);
    }
    content.push(element("p", { class: "note" }, say("explainNote")));
    const table = [["A", "B", say("contribution")], ...rows.flatMap((token, row) => columns.map((other, column) => [token, other, contributions[row][column]]))];
    return { content, picture: grid, table, below: [`A: ${left.text}`, `B: ${right.text}`, `${say("cosine")} ${cosine.toFixed(3)}`] };
  },
};

// The tokens of a text, each as dark as its contribution; pieces of a word are joined.
function strip(name, tokens, largest) {
  const marks = tokens.map(({ token, contribution }) => {
    const level = Math.round((LEVELS * Math.abs(contribution)) / largest);
    const kind = level ? `${contribution < 0 ? "cut" : "add"}-${level}` : "";
    const isSpecial = /^(\[[A-Z]+\]|<\/?\w+>)$/.test(token);
    const isPiece = token.startsWith("##");
    return element("mark", { class: `${kind} ${isSpecial ? "special" : ""} ${isPiece ? "piece" : ""}`, title: contribution.toFixed(4) }, isPiece ? token.slice(2) : token);
  });
  return element("p", { class: "strip" }, element("span", { class: "row" }, name), element("span", { class: "tokens" }, ...marks));
}
