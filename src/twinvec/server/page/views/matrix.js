// The similarity of all texts with each other, as a heat map.

import { choice } from "../dom.js";
import { Grid, gridFigure } from "../grid.js";
import { say } from "../words.js";

export const matrix = {
  least: 2,

  controls: (state, { change }) => [
    choice(say("order"), [["given", say("asGiven")], ["grouped", say("grouped")]], state.order, (order) => change({ order })),
  ],

  request: (state, { texts, limits }) => ({ path: "/twinvec/similarity", body: { texts: texts.slice(0, limits.similarity) } }),

  used: (n, limits) => Math.min(n, limits.similarity),

  show(answer, state, { texts, change }) {
    const rows = state.order === "grouped" ? groupedOrder(answer.scores) : answer.scores.map((_, row) => row);
    const values = rows.map((row) => rows.map((column) => answer.scores[row][column]));
    const others = values.flatMap((row, at) => row.filter((_, column) => column !== at));
    const low = Math.floor(Math.min(...minmax(others)) * 20) / 20;
    const high = answer.measure === "cosine" ? 1 : minmax(values.flat())[1];
    const grid = new Grid({
      rows: rows.map((row) => texts[row]),
      numbers: rows.map((row) => String(row + 1)),
      columns: rows.map((row) => String(row + 1)),
      values,
      domain: [low, high],
      unit: say("similarity"),
    });
    const shown = gridFigure(grid, {
      label: say("matrixLabel", rows.length),
      tip: (row, column) => [
        [`${rows[row] + 1}. ${texts[rows[row]]}`], [`${rows[column] + 1}. ${texts[rows[column]]}`], [values[row][column].toFixed(3), "number"],
      ],
      pick: (row, column) => row !== column && change({ view: "explain", a: String(rows[row]), b: String(rows[column]) }),
    });
    const table = [["", ...rows.map((row) => texts[row])], ...rows.map((row, at) => [texts[row], ...values[at]])];
    return { content: [shown], picture: grid, table };
  },
};

function minmax(numbers) {
  let low = Infinity, high = -Infinity;
  for (const each of numbers) (low = Math.min(low, each)), (high = Math.max(high, each));
  return [low, high];
}

// Rows in an order that puts similar ones together: the leaves of a tree that always merges the two most similar groups.
function groupedOrder(scores) {
  const groups = scores.map((_, row) => [row]);
  const near = scores.map((row) => [...row]);
  const alive = scores.map((_, row) => row);
  const best = scores.map((_, row) => nearest(row, near, alive));
  while (alive.length > 1) {
    let one = alive[0];
    for (const each of alive) if (near[each][best[each]] > near[one][best[one]]) one = each;
    const other = best[one], [n, m] = [groups[one].length, groups[other].length];
    alive.splice(alive.indexOf(other), 1);
    for (const each of alive) near[one][each] = near[each][one] = (n * near[one][each] + m * near[other][each]) / (n + m);
    groups[one] = joined(groups[one], groups[other], scores);
    for (const each of alive) if (each === one || best[each] === one || best[each] === other) best[each] = nearest(each, near, alive);
  }
  return groups[alive[0]] ?? [];
}

function nearest(row, near, alive) {
  let found = -1;
  for (const each of alive) if (each !== row && (found < 0 || near[row][each] > near[row][found])) found = each;
  return found < 0 ? row : found;
}

// Two groups side by side, turned so that their nearest ends meet.
function joined(left, right, scores) {
  const ends = [[left, right], [left, [...right].reverse()], [[...left].reverse(), right], [[...left].reverse(), [...right].reverse()]];
  const meet = ([one, other]) => scores[one.at(-1)][other[0]];
  return ends.reduce((found, each) => (meet(each) > meet(found) ? each : found)).flat();
}
