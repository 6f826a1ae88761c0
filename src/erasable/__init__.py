"""Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""

__version__ = "0.1.0"
