"""The command ``twinvec``, and ``python -m twinvec.cli`` for launchers that start modules."""

import sys

__all__ = ["run"]


def run(arguments: list[str] | None = None) -> None:
    """Run the command with these arguments, or those of the process.

    An interrupt while the command is being imported ends as quietly as a later one.
    """
    try:
        from twinvec.cli.app import main

        main(args=arguments, prog_name="twinvec")
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    run()
