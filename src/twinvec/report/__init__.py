"""Evaluations for people: Markdown, and one HTML page with plots."""

from twinvec.report.evaluation import as_html, write_reports
from twinvec.report.html import facts, protocols, show_interval, show_value
from twinvec.report.markdown import as_markdown

__all__ = ["as_html", "as_markdown", "facts", "protocols", "show_interval", "show_value", "write_reports"]
