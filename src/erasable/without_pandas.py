"""Arrow without pandas, for the processes of command and service, which have no use for it."""

import sys

import pyarrow


class _NoPandas:
    """Finds everything but pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Say that there is no pandas, and nothing about anything else."""
        if name == "pandas":
            raise ModuleNotFoundError("kept out")


def keep_pandas_out() -> None:
    """Have Arrow find no pandas: it would load it, for half a second, only to ask whether something is a Series.

    It asks once. A pandas that is stopped while it loads, by Ctrl-C, breaks whatever asks for it next.
    """
    sys.meta_path.insert(0, _NoPandas)
    pyarrow.array([])
    sys.meta_path.remove(_NoPandas)
