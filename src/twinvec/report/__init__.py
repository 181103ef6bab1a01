"""Results for people: HTML pages, Markdown, plots.

There are two ways to draw, and every picture has exactly one of them:

- SVG, written by hand into the page (``html``), for what readers explore: scores and densities (``evaluation``), the
  cluster map (``clusters``), pairs of tokens (``explanation``). Pointing at a mark shows its text, the colors follow
  the reader's light or dark theme, and no package is needed. A picture that is also a file of its own is the same SVG.
- matplotlib (``plots``), for what goes into papers and slides as PNG: lines, heat maps and color bars (``layers``,
  ``sweep``; ``training`` draws its learning curve so too). Pages embed that PNG.
"""

from twinvec.report.evaluation import as_html, write_reports
from twinvec.report.html import facts, protocols, show_interval, show_value
from twinvec.report.markdown import as_markdown

__all__ = ["as_html", "as_markdown", "facts", "protocols", "show_interval", "show_value", "write_reports"]
