"""A whole chain from a table in memory, as `erasable.testing` has it."""

from erasable.testing.chains import Learned, after, forget, knowledge, learn, positions_of

__all__ = ["Learned", "after", "forget", "knowledge", "learn", "positions_of"]
