"""What a field holds, told by its name: users, items, a measure, or nobody knows.

A short id is only looked for where ids of users can stand; else item 42 would be taken for user 42, and a count of 42
users too. A name is cut into words (user_id, userId, user-id). Words such as id, key or name at its end say nothing.
The word before them decides: user_id holds users, item_id items, user_rating a measure. A plural in front of nothing
(users, n_users) counts users as a number, and names them as a list. A bare `id` means users unless something else says
better. A name with a digit and without such a word (customer-12) is more likely somebody's own.
"""

import re
from enum import Enum
from functools import lru_cache


class Role(Enum):
    """What a field holds."""

    USER = "user"
    """One user."""
    USERS = "users"
    """A number of users, or a list of them."""
    ID = "id"
    """Somebody's or something's id."""
    ITEM = "item"
    MEASURE = "measure"
    UNKNOWN = "unknown"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_USERS = _words(
    "user customer member person subject account client reviewer rater buyer shopper visitor reader viewer listener "
    "player patient student employee subscriber contact owner friend follower followee trustor truster trustee "
    "consumer guest patron uid userid username login email mail who individual household identity"
)
_PLURALS = frozenset({"people", "persons"})
_ITEMS = _words(
    "item product movie film book isbn asin sku article song track artist album title genre category tag page url "
    "video game news catalogue catalog brand business venue recipe iid file folder"
)
_MEASURES = _words(
    "rating score weight time timestamp date datetime count total position rank group cluster cohesion price "
    "amount size length offset seed epoch stage version level year month day hour minute second mean sum minimum "
    "maximum min max std share ratio sample loss quantity star step batch fold split byte row format error "
    "interaction number request event job certificate status erasure digest fingerprint hash"
)
_NEUTRAL = _words("id ids key no nr code name ref uuid guid token index idx pk fk text string str address seq")
_LETTERS = re.compile("[A-Za-z_ -]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=4096)
def role_of(name: str | None) -> Role:
    """Return what a field of this name holds.

    >>> [role_of(name).value for name in ("user_id", "movieId", "n_users", "id", "user_rating", "user-7")]
    ['user', 'item', 'users', 'id', 'measure', 'unknown']
    """
    field = (name or "").split(":")[0]
    words = _words_of(field)
    plain = list(words)
    while plain and plain[-1] in _NEUTRAL:
        plain.pop()
    ends_neutral = len(plain) < len(words)
    if not plain:
        return Role.ID if words and words[-1] in ("id", "ids") else Role.UNKNOWN
    if not ends_neutral and any(letter.isdigit() for letter in field):
        return Role.UNKNOWN
    role = _role_of_word(plain[-1])
    if role is Role.USERS and ends_neutral:
        return Role.USER
    if role is Role.UNKNOWN and ends_neutral and any(_role_of_word(word) is Role.USER for word in plain):
        return Role.USER
    return role


def is_field_name(name: str) -> bool:
    """Whether a name consists of words that fields are called by and of nothing else, so that it is nobody's id.

    >>> [is_field_name(name) for name in ("user_id", "timestamp", "user:ann", "ann_user_id", "note")]
    [True, True, False, False, False]
    """
    known = (word in _NEUTRAL or _role_of_word(word) is not Role.UNKNOWN for word in _words_of(name))
    return _LETTERS.fullmatch(name) is not None and all(known)


def subject_of(name: str | None) -> Role:
    """Return what a table or a file of this name is about: users if any word says so, else items, else measures.

    >>> [subject_of(name).value for name in ("kept-items-670d0bac", "user_items", "requests", "x.csv")]
    ['item', 'user', 'measure', 'unknown']
    """
    roles = {_role_of_word(word) for word in _words_of(name or "")}
    if roles & {Role.USER, Role.USERS}:
        return Role.USER
    return next((role for role in (Role.ITEM, Role.MEASURE) if role in roles), Role.UNKNOWN)


def _words_of(name: str) -> list[str]:
    """Return the words of a name, an `id` that is written in one with a word apart from it: movieid is movie id."""
    return [part for word in _WORD.findall(name) for part in _parted(word.lower())]


def _parted(word: str) -> list[str]:
    for ending in ("ids", "id"):
        stem = word.removesuffix(ending)
        if stem != word and _role_of_word(stem) not in (Role.UNKNOWN, Role.USERS):
            return [stem, ending]
    return [word]


def _role_of_word(word: str) -> Role:
    if word in _PLURALS:
        return Role.USERS
    for words, one, several in (
        (_USERS, Role.USER, Role.USERS),
        (_ITEMS, Role.ITEM, Role.ITEM),
        (_MEASURES, Role.MEASURE, Role.MEASURE),
    ):
        if word in words:
            return one
        if word.endswith("s") and word[:-1] in words:
            return several
    return Role.UNKNOWN
