"""Evaluations for people: Markdown, and one HTML page with plots."""

from twinvec.report.markdown import as_markdown
from twinvec.report.page import as_html
from twinvec.report.words import facts, protocols, show_interval, show_value

__all__ = ["as_html", "as_markdown", "facts", "protocols", "show_interval", "show_value"]
