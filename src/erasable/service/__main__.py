"""`python -m erasable.service`: the process that `erasable serve` becomes."""

import os
import sys

_STOPPED = b"erasable: stopped; nothing is left half done\n"
_INTERRUPTED = 130

try:
    from erasable.without_pandas import keep_pandas_out

    keep_pandas_out()
    from erasable.errors import ErasableError
    from erasable.service._running import ServicePlace, serve
except KeyboardInterrupt:
    os.write(2, _STOPPED)
    os._exit(_INTERRUPTED)

if __name__ == "__main__":
    try:
        serve(ServicePlace.model_validate_json(sys.argv[1]))
    except ErasableError as error:
        sys.exit(f"erasable: {error.of_command}")
    except KeyboardInterrupt:
        os.write(2, _STOPPED)
        sys.exit(_INTERRUPTED)
