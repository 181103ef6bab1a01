"""The entry point of ``twinvec`` and of ``python -m twinvec.cli``."""

import sys

__all__ = ["run"]


def run(arguments: list[str] | None = None) -> None:
    """Run the command with these arguments (default: those of the process).

    Ctrl-C during the import exits without a traceback too.
    """
    try:
        from twinvec.cli.app import main

        main(args=arguments, prog_name="twinvec")
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    run()
