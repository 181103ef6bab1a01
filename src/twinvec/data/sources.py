"""The public data sets: addresses, checksums, licenses and readers.

A checksum is the sha256 of the file as published by its owner. If none could be confirmed it is None: the file is then
downloaded only over https, and reported as not verified. Files of a repository are pinned to one commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinvec.data import source_rows as rows
from twinvec.errors import InputError

__all__ = ["SOURCES", "DataSet", "Download", "with_checksums"]

RESEARCH = "research use; ask the owners about other uses"


@dataclass(frozen=True, slots=True)
class Download:
    """A file to download, and its sha256 (None: not known)."""

    address: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The file name."""
        return self.address.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class DataSet:
    """A public data set: its files, and the reader that turns them into tables."""

    name: str
    what: str
    license: str
    downloads: tuple[Download, ...]
    read: rows.Reader
    note: str = ""


def with_checksums(data_set: DataSet, trusted: Sequence[str]) -> DataSet:
    """The data set with checksums trusted by the user, one per file. Known checksums cannot be replaced."""
    files = data_set.downloads
    if len(trusted) != len(files):
        raise InputError(
            f"{data_set.name} has {len(files)} files, but {len(trusted)} sha256 were passed.",
            hint=f"Pass one per file, in this order: {', '.join(each.name for each in files)}.",
        )
    for each, value in zip(files, trusted, strict=True):
        if not re.fullmatch("[0-9a-fA-F]{64}", value):
            raise InputError(
                f"Invalid sha256 {value!r:.80}.", hint="Pass the 64 hexadecimal digits that sha256sum prints."
            )
        if each.sha256 not in (None, value.lower()):
            raise InputError(f"The known sha256 of {each.name} is {each.sha256}, not {value.lower()}.")
    found = (replace(each, sha256=value.lower()) for each, value in zip(files, trusted, strict=True))
    return replace(data_set, downloads=tuple(found))


STS_WIKI = "https://ixa2.si.ehu.eus/stswiki/images"
SENTEVAL = "https://dl.fbaipublicfiles.com/senteval/senteval_data"
TREC = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
SIF = "https://raw.githubusercontent.com/PrincetonML/SIF/006f00449589393e1f692e57e6616c05667c21f0/data"
KOREAN = "https://raw.githubusercontent.com/kakaobrain/KorNLUDatasets/0df0fe7d496eb61b092e022e238c2230b29f1cbc"
KLUE = "https://raw.githubusercontent.com/KLUE-benchmark/KLUE/3efd98708a40ff49251fddde35453f8fbb11f536/klue_benchmark"
LASER = "https://raw.githubusercontent.com/facebookresearch/LASER/fec5c7d63daa2bea9d127e8252b10e87278586c0/data"
PARAKQC = "https://raw.githubusercontent.com/warnikchow/paraKQC/e5605803f8776cbe38385673a67f79b21cd51971/data"
YEARS = {
    "sts12": f"{STS_WIKI}/4/40/STS2012-en-test.zip",
    "sts13": f"{STS_WIKI}/2/2f/STS2013-en-test.zip",
    "sts14": f"{STS_WIKI}/8/8c/STS2014-en-test.zip",
    "sts15": f"{STS_WIKI}/d/da/STS2015-en-test.zip",
    "sts16": f"{STS_WIKI}/9/98/STS2016-en-test.zip",
}
AS_WRITTEN = "The texts are those of SemEval; SentEval and MTEB use them tokenized and in lower case."
SNLI_SPLITS = {"train": "snli-train", "dev": "snli-dev", "test": "snli-test"}
MNLI_SPLITS = {"train": "mnli-train", "dev_matched": "mnli-dev-matched", "dev_mismatched": "mnli-dev-mismatched"}
SUMS = {
    "sick": "da272af924399fc2de4889ed55383e38822c10d16c4a949a89d597d09a0b7912",
    "snli": "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
    "mnli": "049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
}
MRPC_SUMS = {
    "train": "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
    "test": "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
}
KORSTS_SUMS = {
    "train": "b5aaa7f957d6ff46f4b6834a8b0f024a9234a6eefe9289aed66746b4533da3b8",
    "dev": "d835b65b424401fbcce6be28a78159df8d61f5b19977ea7a0b83b8cb6105f393",
    "test": "13f83a3440d9db52d134eb40303ce021b03264aa338fbf2871c8786ce04d2105",
}
KORNLI_SUMS = {
    "dev": "821fb1c1c2e538ac2724a6132da36ffa379eb9a542ceb89243b3cf711377382c",
    "test": "0db53cf8e182283a0d0404ec3fe1b15d1e29236d23d22082dc20d43067254b3e",
}

ALL = (
    *(
        DataSet(
            year, f"SemEval 20{year[3:]} STS test", RESEARCH, (Download(url),), rows.read_sts_year(year), AS_WRITTEN
        )
        for year, url in YEARS.items()
    ),
    DataSet(
        "stsb",
        "STS benchmark: train, dev, test",
        "CC BY-SA 4.0",
        (Download(f"{STS_WIKI}/4/48/Stsbenchmark.tar.gz"),),
        rows.read_stsb,
    ),
    DataSet(
        "sick",
        "SICK relatedness and entailment: train, trial, test",
        "CC BY-NC-SA 3.0",
        (Download("https://zenodo.org/record/2787612/files/SICK.zip", SUMS["sick"]),),
        rows.read_sick,
    ),
    DataSet(
        "snli",
        "Stanford NLI: train, dev, test",
        "CC BY-SA 4.0",
        (Download("https://nlp.stanford.edu/projects/snli/snli_1.0.zip", SUMS["snli"]),),
        rows.read_nli("snli_1.0", SNLI_SPLITS),
    ),
    DataSet(
        "mnli",
        "MultiNLI: train, dev matched and mismatched",
        "OANC and others, see the paper",
        (Download("https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip", SUMS["mnli"]),),
        rows.read_nli("multinli_1.0", MNLI_SPLITS),
    ),
    DataSet(
        "reviews",
        "MR, CR, SUBJ and MPQA of SentEval",
        RESEARCH,
        (Download(f"{SENTEVAL}/datasmall_NB_ACL12.zip"),),
        rows.read_reviews,
        "SentEval tokenizes these texts again.",
    ),
    DataSet(
        "sst2",
        "SST-2 in the version of SentEval: train, dev, test",
        RESEARCH,
        tuple(Download(f"{SIF}/sentiment-{split}") for split in ("train", "dev", "test")),
        rows.read_sst2,
    ),
    DataSet(
        "trec",
        "TREC question types: train, test",
        RESEARCH,
        (
            Download(f"{TREC}/train_5500.label", "9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3"),
            Download(f"{TREC}/TREC_10.label", "033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e"),
        ),
        rows.read_trec,
    ),
    DataSet(
        "mrpc",
        "MSR paraphrase pairs: train, test",
        RESEARCH,
        tuple(Download(f"{SENTEVAL}/msr_paraphrase_{split}.txt", sha256) for split, sha256 in MRPC_SUMS.items()),
        rows.read_mrpc,
    ),
    DataSet(
        "korsts",
        "KorSTS: STSb in Korean",
        "CC BY-SA 4.0",
        tuple(Download(f"{KOREAN}/KorSTS/sts-{split}.tsv", sha256) for split, sha256 in KORSTS_SUMS.items()),
        rows.read_korsts,
    ),
    DataSet(
        "kornli",
        "KorNLI: XNLI dev and test in Korean",
        "CC BY-SA 4.0",
        tuple(Download(f"{KOREAN}/KorNLI/xnli.{split}.ko.tsv", sha256) for split, sha256 in KORNLI_SUMS.items()),
        rows.read_kornli,
    ),
    DataSet(
        "klue-sts",
        "KLUE STS, dev",
        "CC BY-SA 4.0",
        (Download(f"{KLUE}/klue-sts-v1.1/klue-sts-v1.1_dev.json"),),
        rows.read_klue_sts,
    ),
    DataSet(
        "tatoeba-ko",
        "Tatoeba: 1,000 everyday sentences in English and Korean",
        "Tatoeba's terms: CC BY 2.0 FR",
        tuple(Download(f"{LASER}/tatoeba/v1/tatoeba.kor-eng.{language}") for language in ("eng", "kor")),
        rows.read_tatoeba,
    ),
    DataSet(
        "parakqc",
        "ParaKQC: Korean questions and commands in 1,000 groups of ten paraphrases",
        "CC BY-SA 4.0",
        (Download(f"{PARAKQC}/paraKQC_v1.txt"),),
        rows.read_parakqc,
    ),
    DataSet(
        "cranfield",
        "Cranfield retrieval test: documents, queries, relevance judgments",
        "public test collection",
        (Download("https://ir.dcs.gla.ac.uk/resources/test_collections/cran/cran.tar.gz"),),
        rows.read_cranfield,
    ),
)
SOURCES: dict[str, DataSet] = {each.name: each for each in ALL}
