"""Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""

from erasable.operations import Recommender

__version__ = "0.1.0"

__all__ = ["Recommender", "__version__"]
