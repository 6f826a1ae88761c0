"""The command, which also writes into the file that is named first how many seconds of the processor its scans took.

So the scan of an erasure is measured where it happens; a scan beside it would also open the workspace and find people.
"""

import sys
import time
from pathlib import Path

from erasable.without_pandas import keep_pandas_out

keep_pandas_out()  # before anything else, as the command does

from erasable.__main__ import main  # noqa: E402
from erasable.operations import erase  # noqa: E402


def _timed(file: Path) -> None:
    """Have each search of an erasure timed."""
    search, total = erase.search_for, 0.0

    def timed(*arguments: object, **options: object) -> object:
        nonlocal total
        began = time.process_time()
        try:
            return search(*arguments, **options)  # type: ignore[arg-type]
        finally:
            total += time.process_time() - began
            file.write_text(str(total))

    erase.search_for = timed  # type: ignore[assignment]


if __name__ == "__main__":
    _timed(Path(sys.argv.pop(1)))
    main()
