"""The command line: parse, call one library function, show the result."""

from twinvec.cli.app import main

__all__ = ["main"]
