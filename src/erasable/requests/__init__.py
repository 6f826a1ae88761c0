"""Erasure requests: one type, one lifecycle, one queue; the only place with SQL."""

from erasable.requests.request import Request

__all__ = ["Request"]
