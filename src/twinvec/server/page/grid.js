// A heat map on a canvas, with names of rows and columns, a color bar, and a readout by pointer or arrow keys.
// The matrix, the layers and the explained tokens are all such grids.

import { css, inkOn, ramp, themed } from "./colors.js";
import { FONT, figure, fitted, hideTip, showTip } from "./dom.js";

const TOP_LINE = 22, BAR_ROOM = 64, LEGEND = 46, LARGEST_CELL = 58, NUMBER = 26, SHADES = 255;

// grid: rows and columns (names), values (row by row), domain [low, high], color(value), digits,
// isTurned (names of columns at an angle), leastCell, bars (one per column) and barsName, numbers (of rows), unit.
export class Grid {
  constructor(grid) {
    Object.assign(this, { color: (value) => ramp(this.share(value)), digits: 2, leastCell: 1, bars: null, numbers: null, isTurned: false }, grid);
  }

  share(value) {
    const [low, high] = this.domain;
    return high > low ? (value - low) / (high - low) : 1;
  }

  layout(context, width) {
    context.font = `13px ${FONT}`;
    const widest = Math.max(...this.rows.map((name) => context.measureText(name).width));
    let left = Math.min(widest + 14 + (this.numbers ? NUMBER : 0), width * (width < 560 ? 0.3 : 0.36));
    const turned = Math.max(...this.columns.map((name) => context.measureText(name).width));
    const top = (this.isTurned ? Math.min(turned, 130) * 0.71 + 18 : TOP_LINE) + (this.bars ? BAR_ROOM : 0);
    const right = this.isTurned ? Math.min(turned, 130) * 0.71 : 2;
    let cell = (width - left - right) / this.columns.length;
    const named = cell >= 11 || this.leastCell >= 11;
    if (!named) (left = 0), (cell = (width - 2) / this.columns.length);
    cell = Math.min(Math.max(cell, this.leastCell), LARGEST_CELL * (this.isTurned ? 1.3 : 1));
    const high = this.isTurned ? Math.min(cell, 36) : cell;
    return { left, top: named ? top : 4, cell, high, named, right, turned };
  }

  size(context, width) {
    const { left, top, cell, high, right } = this.layout(context, width);
    return { width: Math.max(width, left + cell * this.columns.length + right), height: top + high * this.rows.length + LEGEND };
  }

  paint(context, width) {
    const place = this.layout(context, width);
    this.paintCells(context, place);
    if (place.named) this.paintNames(context, place);
    if (this.bars) this.paintBars(context, place);
    this.paintLegend(context, place, width);
  }

  paintCells(context, { left, top, cell, high }) {
    const gap = cell >= 12 ? 2 : cell >= 5 ? 0.5 : 0;
    context.font = `${cell >= 40 ? 12.5 : 11}px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const isWritten = cell >= 33 && high >= 22;
    const [low, most] = this.domain; // colors are computed once: a large matrix has 250,000 cells
    const colors = Array.from({ length: SHADES + 1 }, (_, at) => this.color(low + ((most - low) * at) / SHADES));
    const fills = colors.map(css);
    this.values.forEach((row, at) => {
      row.forEach((value, column) => {
        const shade = Math.round(SHADES * Math.min(Math.max(this.share(value), 0), 1));
        context.fillStyle = fills[shade];
        const x = left + column * cell, y = top + at * high;
        if (gap === 2) {
          context.beginPath();
          context.roundRect(x + 1, y + 1, cell - gap, high - gap, Math.min(cell, high) / 9);
          context.fill();
        } else context.fillRect(x, y, cell - gap + (gap ? 0 : 0.35), high - gap + (gap ? 0 : 0.35));
        if (!isWritten) return;
        context.fillStyle = inkOn(colors[shade]);
        context.fillText(shown(value, this.digits), x + cell / 2, y + high / 2 + 0.5);
      });
    });
  }

  paintNames(context, { left, top, cell, high }) {
    const base = top - (this.bars ? BAR_ROOM : 0);
    context.font = `13px ${FONT}`;
    context.fillStyle = themed("ink");
    context.textAlign = "right";
    context.textBaseline = "middle";
    const room = left - 10 - (this.numbers ? NUMBER : 0);
    if (high >= 11) this.rows.forEach((name, row) => context.fillText(fitted(context, name, room), room + 2, top + (row + 0.5) * high));
    context.font = `12px ${FONT}`;
    context.fillStyle = themed("muted");
    if (high >= 11) this.numbers?.forEach((number, row) => context.fillText(number, left - 8, top + (row + 0.5) * high));
    if (this.bars) context.fillText(fitted(context, this.barsName, left - 10), left - 8, top - 16);
    context.font = `13px ${FONT}`;
    context.fillStyle = themed("ink");
    this.columns.forEach((name, column) => {
      const x = left + (column + 0.5) * cell;
      if (!this.isTurned) {
        context.textAlign = "center";
        context.fillStyle = themed("muted");
        context.font = `12px ${FONT}`;
        if (context.measureText(name).width < cell) context.fillText(name, x, base - 10);
        return;
      }
      context.save();
      context.translate(x - 2, base - 8);
      context.rotate(-Math.PI / 4);
      context.textAlign = "left";
      context.fillText(fitted(context, name, 130), 0, 0);
      context.restore();
    });
  }

  paintBars(context, { left, top, cell }) {
    const most = Math.max(...this.bars, 1e-9), room = BAR_ROOM - 14;
    context.fillStyle = themed("accent");
    this.bars.forEach((value, column) => {
      const height = Math.max((Math.max(value, 0) / most) * room, 1);
      context.beginPath();
      context.roundRect(left + column * cell + 1, top - 6 - height, cell - 2, height, [3, 3, 0, 0]);
      context.fill();
    });
  }

  paintLegend(context, { left, top, high }, width) {
    const [low, most] = this.domain, length = Math.min(160, width * 0.4), y = top + high * this.rows.length + 18;
    context.font = `12px ${FONT}`;
    context.textBaseline = "middle";
    const words = [shown(low, this.digits), shown(most, this.digits)];
    const x = left || 46;
    for (let step = 0; step < length; step += 1) {
      context.fillStyle = css(this.color(low + ((most - low) * step) / (length - 1)));
      context.fillRect(x + step, y, 1.5, 10);
    }
    context.fillStyle = themed("muted");
    context.textAlign = "right";
    context.fillText(words[0], x - 7, y + 5.5);
    context.textAlign = "left";
    context.fillText(`${words[1]}   ${this.unit ?? ""}`, x + length + 8, y + 5.5);
  }
}

function shown(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "\u2212");
}

// The grid as an element that can be read cell by cell; pick(row, column) is called for a click or Enter.
export function gridFigure(grid, { label, tip, pick }) {
  const { holder, canvas } = figure(grid, { "aria-label": label });
  const marker = document.createElement("div");
  marker.className = "marker";
  marker.hidden = true;
  holder.append(marker);
  let at = [0, 0];
  const place = () => grid.layout(canvas.getContext("2d"), holder.clientWidth);
  const move = (row, column, isSpoken) => {
    const { left, top, cell, high } = place();
    at = [row, column];
    marker.hidden = false;
    Object.assign(marker.style, { left: `${left + column * cell}px`, top: `${top + row * high}px`, width: `${cell}px`, height: `${high}px` });
    const box = canvas.getBoundingClientRect();
    showTip(tip(row, column), box.left + left + (column + 0.5) * cell, box.top + top + row * high, isSpoken);
  };
  const leave = () => ((marker.hidden = true), hideTip());
  const under = (event) => {
    const { left, top, cell, high } = place(), box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / cell), row = Math.floor((event.clientY - box.top - top) / high);
    return row >= 0 && column >= 0 && row < grid.rows.length && column < grid.columns.length ? [row, column] : null;
  };
  const pointed = (event) => {
    const cell = under(event);
    canvas.classList.toggle("pickable", Boolean(cell && pick));
    if (cell) move(...cell, false);
    else leave();
  };
  canvas.addEventListener("pointermove", pointed);
  canvas.addEventListener("pointerdown", pointed);
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("click", (event) => {
    const cell = under(event);
    if (cell && pick && event.pointerType !== "touch") pick(...cell);
  });
  canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && move(...at, true));
  canvas.addEventListener("keydown", (event) => {
    const [row, column] = at, last = [grid.rows.length - 1, grid.columns.length - 1];
    const next = {
      ArrowUp: [Math.max(row - 1, 0), column], ArrowDown: [Math.min(row + 1, last[0]), column],
      ArrowLeft: [row, Math.max(column - 1, 0)], ArrowRight: [row, Math.min(column + 1, last[1])],
      Home: [row, 0], End: [row, last[1]],
    }[event.key];
    if (event.key === "Enter" && pick) pick(row, column);
    else if (event.key === "Escape") leave();
    if (!next) return;
    event.preventDefault();
    move(...next, true);
  });
  return holder;
}
