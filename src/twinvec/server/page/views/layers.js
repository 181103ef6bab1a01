// One text: the weights of its tokens and of the layers within each token, by SBERT-WK.

import { choice, element, rowOf, textOptions } from "../dom.js";
import { Grid, gridFigure } from "../grid.js";
import { say } from "../words.js";

export const layers = {
  least: 1,

  controls: (state, { texts, change }) => [
    choice(say("sentence"), textOptions(texts), String(rowOf(state.a, texts)), (a) => change({ a }), "wide"),
  ],

  request: (state, { texts, limits }) => ({ path: "/twinvec/layers", body: { text: texts[rowOf(state.a, texts)].slice(0, limits.characters) } }),

  used: (n) => n,

  show(answer) {
    const { tokens, weights, importance, layer_start: start } = answer;
    const rows = weights.map((_, at) => weights.length - 1 - at); // the last layer is on top
    const values = rows.map((at) => weights[at]);
    const flat = values.flat();
    const name = (at) => `${say("layer")} ${rows[at] + start}`;
    const grid = new Grid({
      rows: rows.map((_, at) => name(at)),
      columns: tokens,
      values,
      bars: importance,
      barsName: say("token"),
      domain: [Math.min(0, ...flat), Math.max(...flat)],
      isTurned: true,
      leastCell: 26,
      unit: say("weight"),
    });
    const shown = gridFigure(grid, {
      label: say("layersLabel", tokens.length, rows.length),
      tip: (row, column) => [
        [`${tokens[column]} · ${name(row)}`], [values[row][column].toFixed(3), "number"], [`${say("importance")}: ${importance[column].toFixed(3)}`, "muted"],
      ],
    });
    shown.classList.add("scrolls");
    const table = [["token", "weight", ...weights.map((_, at) => `layer ${at + start}`)], ...tokens.map((token, at) => [token, importance[at], ...weights.map((row) => row[at])])];
    return { content: [shown, element("p", { class: "note" }, say("layersNote"))], picture: grid, table, below: [answer.text] };
  },
};
