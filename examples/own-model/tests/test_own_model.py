"""BPR does what is asked of every model: behaviour, exactness, any path."""

from own_model import BPR

from erasable.testing import ModelSuite


class TestBPR(ModelSuite):
    model = BPR(factors=4, epochs=5)
