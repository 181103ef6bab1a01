"""Test an installed wheel without extras and without network, with the shipped models and a generated one. Run by CI.

python scripts/smoke.py WHEEL
"""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import numpy as np

import twinvec
from tiny import write_tiny_model

MOST_WHEEL_BYTES = 50_000_000  # with two English models and a Korean one


def main(wheel: Path) -> None:
    """Encode with the core alone, and check the error for a missing extra."""
    sys.addaudithook(refuse_network)
    assert "site-packages" in twinvec.__file__, twinvec.__file__
    assert find_spec("torch") is None and find_spec("openvino") is None
    size = wheel.stat().st_size
    assert size <= MOST_WHEEL_BYTES, f"{wheel} has {size:,} bytes"
    try_own_model()
    with tempfile.TemporaryDirectory() as folder:
        try_other_model(write_tiny_model(Path(folder) / "tiny"))
    print(f"twinvec {twinvec.__version__}: the core works alone; the wheel has {size / 1e6:.1f} MB")


def refuse_network(event: str, _: tuple[object, ...]) -> None:
    """An audit hook that fails on any name lookup or connection."""
    if event in ("socket.getaddrinfo", "socket.connect"):
        raise AssertionError(f"{event}: the network was used")


def try_own_model() -> None:
    """Run the command of the quick start, and the same with the Korean model."""
    near, far = similarity("a cat", "a kitten"), similarity("a cat", "the stock market")
    assert 1 > near > far + 0.2, (near, far)
    korean = "비밀번호를 잊어버렸어요.", "비밀번호를 어떻게 재설정하나요?", "환불 정책이 뭔가요?"
    near, far = (similarity(korean[0], other, "-m", "twinvec-ko") for other in korean[1:])
    assert 1 > near > far + 0.2, (near, far)


def similarity(left: str, right: str, *options: str) -> float:
    """The score that ``twinvec similarity`` prints."""
    (command,) = entry_points(group="console_scripts", name="twinvec")
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        command.load()(["similarity", left, right, *options])
    return float(printed.getvalue())


def try_other_model(model: Path) -> None:
    """Encode with a model folder in two precisions, and ask for a runtime that is not installed."""
    exact = twinvec.load(model).encode(["the cat sits", "a dog"])
    small = twinvec.load(model, precision="int8").encode(["the cat sits", "a dog"])
    assert np.allclose(np.linalg.norm(exact, axis=1), 1, atol=1e-5)
    assert twinvec.similarity_pairwise(exact, small).min() > 0.99
    try:
        twinvec.load(model, runtime="openvino")
    except twinvec.TwinvecError as error:
        assert "pip install 'twinvec[fast]'" in str(error), error
    else:
        raise AssertionError("openvino is not installed, but no error was raised")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
