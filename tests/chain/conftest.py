"""A state made by hand."""

import pytest

from kit.handmade import handmade


@pytest.fixture
def learned() -> object:
    """A state made by hand, whose scores anyone can read off."""
    return handmade()
