"""Slots: 4,096 shares of the people, by hash of seed and id. Somebody's slot depends on nobody else."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from erasable.data.ids import Ids, byte_order
from erasable.data.interactions import Interactions
from erasable.seeding import id_keys

SLOTS = 4096
_BITS = 12


def slot_keys(users: Ids, seed: int) -> NDArray[np.uint64]:
    """Return a hash of seed and id for each user; its first bits are the slot."""
    return id_keys(seed, "slot", users)


def slots_of(users: Ids, seed: int) -> NDArray[np.int16]:
    """Return the slot of each user."""
    return (slot_keys(users, seed) >> np.uint64(64 - _BITS)).astype(np.int16)


def in_slots(rows: Interactions, seed: int) -> Interactions:
    """Return the same rows with users by slot, and by id within one."""
    return rows if rows.by_slot else replace(rows, by_slot=True).at(slot_order(rows.users, seed))


def slot_order(users: Ids, seed: int) -> NDArray[np.int64]:
    """Return the positions of users, by slot and by id within one."""
    rank = np.empty(len(users), np.int64)
    rank[np.asarray(byte_order(users.array))] = np.arange(len(users))
    return np.lexsort((rank, slots_of(users, seed)))
