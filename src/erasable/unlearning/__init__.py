"""Unlearning: requests, what they would cost, and carrying them out on a chain."""

from erasable.unlearning.forget import forget
from erasable.unlearning.plan import Apart, Plan, carry_out, largest_cost, plan_change
from erasable.unlearning.request import Erasure, Request, known_requests

__all__ = [
    "Apart",
    "Erasure",
    "Plan",
    "Request",
    "carry_out",
    "forget",
    "known_requests",
    "largest_cost",
    "plan_change",
]
