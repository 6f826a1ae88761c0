"""The entry point of the command, also as `python -m erasable`: it takes Ctrl-C before anything else is loaded."""

import os
import sys


def main() -> None:
    """Load the command and run it; Ctrl-C ends it with one line, whatever it is doing."""
    try:
        from erasable.interrupts import guarded

        guarded(_command)
    except KeyboardInterrupt:  # before the guard stood
        os.write(2, b"erasable: stopped; nothing is left half done\n")
        os._exit(130)


def _command() -> None:
    _keep_pandas_out()
    from erasable.cli.main import main as command

    command()


class _NoPandas:
    """Finds everything but pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Say that there is no pandas, and nothing about anything else."""
        if name == "pandas":
            raise ModuleNotFoundError("kept out")


def _keep_pandas_out() -> None:
    """Have Arrow find no pandas: it would load it, for half a second, only to ask whether something is a Series.

    It asks once. A pandas that is stopped while it loads, by Ctrl-C, breaks whatever asks for it next.
    """
    sys.meta_path.insert(0, _NoPandas)
    import pyarrow

    pyarrow.array([])
    sys.meta_path.remove(_NoPandas)


if __name__ == "__main__":
    main()
