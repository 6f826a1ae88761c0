"""Where people are: by the position of their group and their row in it, as hand-made cases name them."""

from erasable.chain import Dataset, Place


def place(dataset: Dataset, position: int, row: int) -> Place:
    """Return the place of the n-th user, by id, of the group at a position."""
    return dataset.find(dataset.groups[position].users[row])


def places(dataset: Dataset) -> list[Place]:
    """Return the places of everyone, group by group, by id."""
    return [dataset.find(user) for group in dataset.groups for user in group.users]
