"""Arrow without pandas, for the command and the service, which don't need it."""

import sys

import pyarrow


class _NoPandas:
    """An import hook that hides pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Report pandas as missing; leave all other modules to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError("kept out")


def keep_pandas_out() -> None:
    """Hide pandas from Arrow, which would import it for half a second, only to check for a Series.

    Arrow looks once. Also, an import of pandas interrupted by Ctrl-C breaks the next one.
    """
    sys.meta_path.insert(0, _NoPandas)
    pyarrow.array([])
    sys.meta_path.remove(_NoPandas)
