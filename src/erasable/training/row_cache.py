"""A bounded cache of user rows that were solved, for the process that serves; the least recently used go first."""

from collections import OrderedDict
from collections.abc import Collection
from threading import Lock

from erasable.models import Arrays

ROWS_SERVED = 20_000
"""How many rows a process that serves keeps: about 10 MB for rows of 64 numbers."""


class RowCache:
    """Keeps rows by user id, at most so many; may be used by several threads at once."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self._rows: OrderedDict[str, Arrays] = OrderedDict()
        self._barred: set[str] = set()
        self._lock = Lock()

    def get(self, user: str) -> Arrays | None:
        """Return someone's row if it is kept."""
        with self._lock:
            found = self._rows.get(user)
            if found is not None:
                self._rows.move_to_end(user)
            return found

    def put(self, user: str, rows: Arrays) -> None:
        """Keep someone's row, unless they are barred."""
        with self._lock:
            if self.size and user not in self._barred:
                self._rows[user] = rows
                self._rows.move_to_end(user)
                if len(self._rows) > self.size:
                    self._rows.popitem(last=False)

    def bar(self, users: Collection[str]) -> None:
        """Drop the rows of these users, and keep none of theirs until others are barred.

        A row that is being solved meanwhile is not kept either.
        """
        with self._lock:
            barred, before = set(users), self._barred
            self._barred = barred
            self._drop(barred - before)  # of those before none was kept since

    def bar_also(self, users: Collection[str]) -> None:
        """Bar these users too."""
        with self._lock:
            self._barred.update(users)
            self._drop(users)

    def _drop(self, users: Collection[str]) -> None:
        for user in users:
            self._rows.pop(user, None)

    def __contains__(self, user: str) -> bool:
        """Whether someone's row is kept."""
        return user in self._rows

    def __len__(self) -> int:
        return len(self._rows)
