"""Erasure requests: one type, one life, one queue; SQL stands nowhere else."""

from erasable.requests.request import Request

__all__ = ["Request"]
