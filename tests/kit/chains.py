"""A whole chain from a table in memory, as `erasable.testing` has it."""

from erasable.testing._suite import LearnedChain, after, dataset, forget, learn, positions_of

__all__ = ["LearnedChain", "after", "dataset", "forget", "learn", "positions_of"]
