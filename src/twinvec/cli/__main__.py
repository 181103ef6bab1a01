"""``python -m twinvec.cli``: the command, for launchers that start modules."""

from twinvec.cli import main

if __name__ == "__main__":
    main(prog_name="twinvec")
