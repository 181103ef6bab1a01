"""The command ``twinvec``, and ``python -m twinvec.cli`` for launchers that start modules."""

import sys

__all__ = ["run"]


def run() -> None:
    """Run the command; an interrupt while it is being imported ends as quietly as a later one."""
    try:
        from twinvec.cli.app import main

        main(prog_name="twinvec")
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    run()
