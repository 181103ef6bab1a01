// A list of scored texts as a picture, for the PNG of pairs and search results.

import { css, ramp, themed } from "./colors.js";
import { FONT, wrapped } from "./dom.js";

const LINE = 24, LEFT = 150, MOST = 20;

// items: {score, share (0 to 1), texts: [{text, marks: [[start, end, strength (0 to 1)]]}]}
export class Listing {
  constructor(items) {
    this.items = items.slice(0, MOST);
  }

  size(context, width) {
    context.font = `17px ${FONT}`;
    const heights = this.items.map((item) => this.lines(context, item, width).length * LINE + 20);
    return { width, height: heights.reduce((sum, each) => sum + each, 0) };
  }

  lines(context, item, width) {
    return item.texts.flatMap(({ text, marks = [] }) => {
      let at = 0;
      return wrapped(context, text, width - LEFT - 8).map((line) => {
        const start = Math.max(text.indexOf(line, at), at);
        at = start + line.length;
        return { line, marks: marks.filter((mark) => mark[0] >= start && mark[1] <= at).map(([from, to, strength]) => [from - start, to - start, strength]) };
      });
    });
  }

  paint(context, width) {
    let y = 0;
    context.textAlign = "left";
    for (const item of this.items) {
      context.font = `17px ${FONT}`;
      const lines = this.lines(context, item, width);
      context.fillStyle = css(ramp(0.06));
      bar(context, 62, y + 13, 70);
      context.fillStyle = themed("accent");
      bar(context, 62, y + 13, Math.max(70 * item.share, 4));
      lines.forEach(({ line, marks }, row) => marks.forEach((mark) => highlight(context, line, mark, y + 6 + row * LINE)));
      context.fillStyle = themed("ink");
      context.textBaseline = "middle";
      context.fillText(item.score.toFixed(3), 0, y + 17);
      lines.forEach(({ line }, row) => context.fillText(line, LEFT, y + 17 + row * LINE));
      y += lines.length * LINE + 20;
      context.fillStyle = themed("line");
      context.fillRect(0, y - 6, width, 1);
    }
  }
}

function highlight(context, line, [start, end, strength], y) {
  const x = LEFT + context.measureText(line.slice(0, start)).width, width = context.measureText(line.slice(start, end)).width;
  context.globalAlpha = 0.55 * strength;
  context.fillStyle = themed("add");
  context.beginPath();
  context.roundRect(x - 2, y, width + 4, 22, 5);
  context.fill();
  context.globalAlpha = 1;
}

function bar(context, x, y, width) {
  context.beginPath();
  context.roundRect(x, y, width, 8, 4);
  context.fill();
}
