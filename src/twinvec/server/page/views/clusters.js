// Clusters of texts on a map, with key words.

import { clusterColor, themed } from "../colors.js";
import { FONT, choice, element, figure, hideTip, showTip } from "../dom.js";
import { say } from "../words.js";

const NAME_LINE = 22;

export const clusters = {
  least: 2,

  controls: (state, { texts, change }) => [
    choice(say("nClusters"), [["", say("automatic", guess(texts.length))], ...[2, 3, 4, 5, 6, 8, 10, 12, 16, 20].filter((n) => n <= texts.length).map((n) => [String(n), String(n)])], state.n, (n) => change({ n })),
  ],

  request: (state, { texts, limits }) => {
    const listed = texts.slice(0, limits.texts);
    return { path: "/twinvec/clusters", body: { texts: listed, n_clusters: Math.min(Number(state.n) || guess(listed.length), listed.length) } };
  },

  show(answer, state, { texts }) {
    const map = new ClusterMap(answer, texts);
    const legend = element("ul", { class: "legend" }, ...answer.clusters.map((each) => legendItem(each, map)));
    const note = element("p", { class: "note" }, say("mapNote"));
    const rows = answer.labels.map((label, row) => [texts[row], label, answer.clusters[label]?.words.join(" ") ?? "", ...answer.points[row]]);
    map.element = mapFigure(map);
    return { content: [element("div", { class: "map" }, map.element, legend), note], picture: map, table: [["text", "cluster", "words", "x", "y"], ...rows] };
  },
};

// A number of clusters for n texts that are not known.
function guess(n) {
  return Math.min(Math.max(Math.round(Math.sqrt(n / 1.2)), 2), 12, Math.max(n, 1));
}

function legendItem(cluster, map) {
  const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = clusterColor(cluster.label);
  const words = cluster.words.slice(0, 4).join(", ") || cluster.texts[0];
  const button = element(
    "button", { type: "button", class: "plain", "aria-pressed": "false" },
    element("span", { class: "words" }, swatch, words), element("span", { class: "size" }, say("clusterSize", cluster.size)), element("span", { class: "central" }, cluster.texts[0]),
  );
  const choose = (label) => ((map.chosen = label), map.element.redraw());
  let isKept = false;
  button.addEventListener("mouseenter", () => choose(cluster.label));
  button.addEventListener("mouseleave", () => choose(isKept ? cluster.label : null));
  button.addEventListener("click", () => {
    isKept = !isKept;
    for (const each of button.closest("ul").querySelectorAll("button")) each.setAttribute("aria-pressed", String(each === button && isKept));
    choose(isKept ? cluster.label : null);
  });
  return element("li", {}, button);
}

class ClusterMap {
  constructor(answer, texts) {
    Object.assign(this, { labels: answer.labels, clusters: answer.clusters, texts: texts.slice(0, answer.labels.length), chosen: null });
    const columns = [0, 1].map((axis) => answer.points.map((point) => point[axis]));
    const [low, high] = [columns.map((each) => each.reduce((a, b) => Math.min(a, b))), columns.map((each) => each.reduce((a, b) => Math.max(a, b)))];
    this.shares = answer.points.map((point) => point.map((value, axis) => (high[axis] > low[axis] ? (value - low[axis]) / (high[axis] - low[axis]) : 0.5)));
    this.radius = answer.labels.length < 60 ? 7 : answer.labels.length < 400 ? 5 : 3.2;
  }

  size(context, width) {
    return { width, height: Math.round(Math.min(width * (width < 560 ? 1 : 0.66), 680)) };
  }

  places(context, width) {
    const { height } = this.size(context, width), edge = 26;
    return this.shares.map(([x, y]) => [edge + x * (width - 2 * edge), edge + (1 - y) * (height - 2 * edge)]);
  }

  paint(context, width) {
    const { height } = this.size(context, width), places = this.places(context, width);
    context.fillStyle = themed("sunk");
    context.beginPath();
    context.roundRect(0, 0, width, height, 12);
    context.fill();
    places.forEach(([x, y], row) => {
      const isFaint = this.chosen !== null && this.labels[row] !== this.chosen;
      context.globalAlpha = isFaint ? 0.15 : 0.9;
      context.fillStyle = clusterColor(this.labels[row]);
      context.beginPath();
      context.arc(x, y, this.radius, 0, 2 * Math.PI);
      context.fill();
      context.lineWidth = 1.2;
      context.strokeStyle = themed("sunk");
      context.stroke();
    });
    context.globalAlpha = 1;
    this.paintNames(context, places, width, height);
  }

  paintNames(context, places, width, height) {
    context.font = `600 13.5px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const placed = [];
    for (const cluster of this.clusters.slice(0, 12)) {
      if (this.chosen !== null && cluster.label !== this.chosen) continue;
      const name = cluster.words.slice(0, 2).join(", ");
      const own = places.filter((_, row) => this.labels[row] === cluster.label);
      if (!own.length || !name) continue;
      const half = context.measureText(name).width / 2 + 6;
      const x = Math.min(Math.max(middle(own.map((each) => each[0])), half), width - half);
      const wanted = Math.min(...own.map((each) => each[1])) - this.radius - 12;
      const y = freeLine(x, Math.max(wanted, NAME_LINE / 2), half, placed, height);
      placed.push([x, y, half]);
      context.lineWidth = 5;
      context.lineJoin = "round";
      context.strokeStyle = themed("sunk");
      context.strokeText(name, x, y);
      context.fillStyle = themed("ink");
      context.fillText(name, x, y);
    }
  }
}

function middle(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

// The height nearest to the wanted one where a name of this width hits no other.
function freeLine(x, y, half, placed, height) {
  for (let away = 0; away < 30; away += 1) {
    for (const line of [y + away * NAME_LINE, y - away * NAME_LINE]) {
      const isFree = placed.every(([a, b, width]) => Math.abs(b - line) >= NAME_LINE || Math.abs(a - x) >= half + width);
      if (isFree && line >= NAME_LINE / 2 && line <= height - NAME_LINE / 2) return line;
    }
  }
  return y;
}

function mapFigure(map) {
  const { holder, canvas } = figure(map, { "aria-label": say("mapLabel", map.labels.length, map.clusters.length) });
  const marker = element("div", { class: "marker round", hidden: true });
  holder.append(marker);
  const order = map.labels.map((_, row) => row).sort((a, b) => map.labels[a] - map.labels[b] || map.shares[a][0] - map.shares[b][0]);
  let at = 0;
  const places = () => map.places(canvas.getContext("2d"), holder.clientWidth);
  const move = (row, isSpoken) => {
    const [x, y] = places()[row], size = map.radius + 5, box = canvas.getBoundingClientRect();
    marker.hidden = false;
    Object.assign(marker.style, { left: `${x - size}px`, top: `${y - size}px`, width: `${2 * size}px`, height: `${2 * size}px` });
    const cluster = map.clusters[map.labels[row]];
    showTip([[map.texts[row]], [cluster?.words.slice(0, 4).join(", ") || say("alone"), "muted"]], box.left + x, box.top + y - size, isSpoken);
  };
  const leave = () => ((marker.hidden = true), hideTip());
  const pointed = (event) => {
    const box = canvas.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const away = places().map(([a, b]) => (a - x) ** 2 + (b - y) ** 2);
    const row = away.indexOf(away.reduce((a, b) => Math.min(a, b)));
    if (away[row] < (map.radius + 10) ** 2) move(row, false);
    else leave();
  };
  canvas.addEventListener("pointermove", pointed);
  canvas.addEventListener("pointerdown", pointed);
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && move(order[at], true));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    at = (at + step + order.length) % order.length;
    move(order[at], true);
  });
  return holder;
}
