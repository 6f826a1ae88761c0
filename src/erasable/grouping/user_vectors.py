"""User vectors: walks read as sentences whose words are users, embedded by gensim's skip-gram (Appendix A)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from erasable.grouping.parallel import Advance, ignore
from erasable.grouping.walks import Walks
from erasable.seeding import child_key

SIZE = 32
WINDOW = 5
EPOCHS = 5
NEGATIVES = 5
SENTENCE_READINGS = EPOCHS + 1
"""How often gensim reads the walks: once more than there are epochs, for the vocabulary."""
_WALKS_AT_ONCE = 10_000


def user_vectors(walks: Walks, users: int, seed: int, advance: Advance = ignore) -> NDArray[np.float32]:
    """Return a vector for each user; one worker, so that it repeats to the byte."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        sentences=_Sentences(walks, advance),
        vector_size=SIZE,
        window=WINDOW,
        epochs=EPOCHS,
        negative=NEGATIVES,
        sg=1,
        min_count=1,
        sample=0,
        workers=1,
        seed=child_key(seed, "user vectors") % 2**31,
    )
    places = [model.wv.key_to_index[user] for user in range(users)]
    return np.ascontiguousarray(model.wv.vectors[places])


class _Sentences:
    """Walks as lists of words, the numbers of users; may be read several times."""

    def __init__(self, walks: Walks, advance: Advance) -> None:
        self._walks = walks
        self._advance = advance

    def __iter__(self) -> Iterator[list[int]]:
        for begin in range(0, len(self._walks), _WALKS_AT_ONCE):
            part = self._walks[begin : begin + _WALKS_AT_ONCE]
            yield from part.tolist()
            self._advance(len(part))
