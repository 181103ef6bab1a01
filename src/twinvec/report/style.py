"""The look of the HTML report: one style sheet, for light and dark screens and for paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1b1f24; --soft: #5c6570; --faint: #8b949e; --line: #e4e6e8;
  --grid: #eceef0; --bar: #3b6ea8; --mark: #14263b; --bad: #a3402f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1b1f25; --ink: #e8eaed; --soft: #a9b1ba; --faint: #7d8690; --line: #2d333b;
    --grid: #272d35; --bar: #5b93d1; --mark: #f0f4f8; --bad: #e58a78;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 "Inter", "Segoe UI", -apple-system, BlinkMacSystemFont, "Helvetica Neue", Arial, sans-serif;
  font-feature-settings: "tnum"; font-variant-numeric: tabular-nums; -webkit-font-smoothing: antialiased;
}
main { max-width: 1080px; margin: 0 auto; padding: 56px 40px 72px; }
.eyebrow { font-size: 12px; letter-spacing: .12em; text-transform: uppercase; color: var(--soft); margin: 0 0 8px; }
h1 { font-size: 34px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 21px; font-weight: 620; letter-spacing: -.01em; margin: 52px 0 2px; }
h3 { font-size: 15px; font-weight: 620; margin: 0; color: var(--ink); }
p { margin: 6px 0; }
.lead, .note { color: var(--soft); max-width: 80ch; }
.note { font-size: 13.5px; max-width: 110ch; }
.problem { color: var(--bad); fill: var(--bad); font-size: 14px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 16px; margin-top: 28px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 22px; }
.tile .number { font-size: 38px; line-height: 1.1; font-weight: 640; letter-spacing: -.02em; margin: 0; }
.tile .what { font-weight: 560; margin: 8px 0 0; }
.tile .how { font-size: 13px; color: var(--soft); margin: 2px 0 0; }
.chart { margin-top: 14px; padding: 22px 24px 12px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 16px; margin-top: 14px; }
figure { margin: 0; }
figcaption { font-size: 13px; color: var(--soft); margin-bottom: 10px; }
svg { display: block; width: 100%; height: auto; font-family: inherit; }
.name { font-size: 14.5px; font-weight: 560; fill: var(--ink); }
.value { font-size: 14.5px; font-weight: 640; fill: var(--ink); }
.range, .tick { font-size: 12.5px; fill: var(--faint); }
.axis { font-size: 12.5px; fill: var(--soft); }
.small, .smallvalue { font-size: 13px; fill: var(--soft); }
.smallvalue { font-weight: 600; fill: var(--ink); }
.bar { fill: var(--bar); opacity: .85; }
.cell { fill: var(--bar); }
.median { fill: none; stroke: var(--mark); stroke-width: 1.8; stroke-linejoin: round; }
.dot { fill: var(--bar); fill-opacity: .55; }
.grid { stroke: var(--grid); stroke-width: 1; }
.zero { stroke: var(--faint); stroke-width: 1; }
.interval { stroke: var(--mark); stroke-width: 1.6; }
.against { fill: var(--bad); }
.words { line-height: 2.1; font-size: 17px; margin-top: 12px; }
.words span { padding: 3px 5px; border-radius: 5px; margin-right: 3px; white-space: nowrap; }
.mapname {
  font-size: 14px; font-weight: 620; fill: var(--ink); paint-order: stroke; stroke: var(--card); stroke-width: 3.5px;
}
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 5px; margin-right: 8px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin-top: 14px; }
th { text-align: left; font-weight: 560; color: var(--soft); font-size: 13px; }
th, td { padding: 8px 14px 8px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
.facts { margin-top: 14px; font-size: 14px; }
.facts th { width: 110px; font-weight: 500; }
.facts td { overflow-wrap: anywhere; }
@media (max-width: 640px) { main { padding: 32px 18px 48px; } .pair { grid-template-columns: 1fr; } }
@media print { main { padding: 0; } .card { break-inside: avoid; } h2 { break-after: avoid; } }
"""
