"""`python -m erasable.service`: what `erasable serve` runs, in a process of its own."""

import sys

from erasable.service.running import Place, serve

if __name__ == "__main__":
    serve(Place.model_validate_json(sys.argv[1]))
