"""Unlearning: whom it is about, what it would cost, and carrying it out on a chain."""

from erasable.unlearning.forget import forget
from erasable.unlearning.plan import Apart, Plan, carry_out, largest_cost, plan_change
from erasable.unlearning.request import Erasure, Subject, known_requests

__all__ = [
    "Apart",
    "Erasure",
    "Plan",
    "Subject",
    "carry_out",
    "forget",
    "known_requests",
    "largest_cost",
    "plan_change",
]
