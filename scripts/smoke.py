"""Try the installed core, with no extra beside it, on a model made here: used by CI on the built wheel."""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

import twinvec
from tiny import write_tiny_model


def main() -> None:
    """Encode with the core alone, and meet the errors for what is not installed."""
    assert "site-packages" in twinvec.__file__, twinvec.__file__
    assert find_spec("torch") is None and find_spec("openvino") is None
    with tempfile.TemporaryDirectory() as folder:
        model = write_tiny_model(Path(folder) / "tiny")
        exact = twinvec.load(model).encode(["the cat sits", "a dog"])
        small = twinvec.load(model, precision="int8").encode(["the cat sits", "a dog"])
        assert np.allclose(np.linalg.norm(exact, axis=1), 1, atol=1e-5)
        assert twinvec.similarity_pairwise(exact, small).min() > 0.99
        try:
            twinvec.load(model, runtime="openvino")
        except twinvec.TwinvecError as error:
            assert "pip install 'twinvec[fast]'" in str(error), error
        else:
            raise AssertionError("openvino is not installed, but no error came")
    print(f"twinvec {twinvec.__version__}: the core works alone")


if __name__ == "__main__":
    main()
