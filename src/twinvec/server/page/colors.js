// Colors of the pictures. Both scales change in lightness evenly, so they are readable without color vision.

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const probe = document.createElement("span");
const known = new Map(); // reading a computed style for each of thousands of points would be slow

// The color of a CSS variable in the current theme, such as 'ink', for use in a canvas.
export function themed(name) {
  const key = `${name} ${isDark()}`;
  if (!known.has(key)) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${name})`;
    known.set(key, getComputedStyle(probe).color);
  }
  return known.get(key);
}

// A color for a share of 0 to 1: from the paper's lightness to a deep blue, or from night to light green.
export function ramp(share) {
  const t = Math.min(Math.max(share, 0), 1);
  const chroma = 0.012 + 0.11 * Math.sin(Math.PI * t * 0.8);
  return isDark() ? oklch(0.25 + 0.69 * t, chroma, 272 - 100 * t) : oklch(0.972 - 0.64 * t, chroma, 205 + 63 * t);
}

// A color for -1 to 1: orange below zero, blue above.
export function diverging(share) {
  const t = Math.min(Math.abs(share), 1);
  const hue = share < 0 ? 55 : 258;
  return isDark() ? oklch(0.25 + 0.55 * t, 0.015 + 0.13 * t, hue) : oklch(0.972 - 0.45 * t, 0.008 + 0.14 * t, hue);
}

// Black or white, whichever can be read on a color.
export function inkOn([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10161d" : "#ffffff";
}

export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

// Twelve hues in an order that keeps neighbors apart also for color-blind readers, by lightness.
const CLUSTERS = [
  [0.55, 0.15, 255], [0.72, 0.15, 65], [0.58, 0.12, 175], [0.62, 0.17, 350], [0.76, 0.13, 215], [0.48, 0.13, 305],
  [0.74, 0.15, 130], [0.55, 0.15, 30], [0.7, 0.12, 295], [0.5, 0.09, 145], [0.66, 0.09, 80], [0.45, 0.06, 240],
];

export function clusterColor(label) {
  if (label < 0) return css(oklch(0.7, 0.01, 250));
  const [light, chroma, hue] = CLUSTERS[label % CLUSTERS.length];
  return css(oklch(light + (isDark() ? 0.06 : 0), chroma, hue));
}

function oklch(light, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle), b = chroma * Math.sin(angle);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map(encoded);
}

function encoded(linear) {
  const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(Math.max(value, 0), 1));
}
