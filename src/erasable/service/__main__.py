"""`python -m erasable.service`: what `erasable serve` runs, in a process of its own."""

import sys

from erasable.errors import ErasableError
from erasable.service.running import Place, serve

_INTERRUPTED = 130

if __name__ == "__main__":
    try:
        serve(Place.model_validate_json(sys.argv[1]))
    except ErasableError as error:
        sys.exit(f"erasable: {error}")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
