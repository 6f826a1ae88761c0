import re
from textwrap import dedent

import pytest

from erasable import errors
from erasable.errors import (
    DataRefused,
    ErasableError,
    NotReproducible,
    Refused,
    UnknownInteraction,
    UnknownUser,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
    WrongUse,
    exit_code,
    http_status,
)


def drawn_tree():
    """Read (depth, name) of each line of the tree that the module's docstring draws."""
    picture = dedent(errors.__doc__.split("\n", 1)[1])
    lines = [re.match(r"([│├└─ ]*)([A-Z]\w+)", line) for line in picture.splitlines()]
    return [(len(line[1]) // 4, line[2]) for line in lines if line]


def real_tree(kind=ErasableError, depth=0):
    children = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    below = [entry for child in children for entry in real_tree(child, depth + 1)]
    return [(depth, kind.__name__), *below]


def test_the_tree_in_the_docstring_is_the_tree_of_classes():
    assert drawn_tree() == real_tree()


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        (WrongUse, 2, 422),
        (DataRefused, 1, 422),
        (Refused, 1, 409),
        (UnknownUser, 1, 404),
        (UnknownInteraction, 1, 404),
        (WorkspaceError, 1, 500),
        (WorkspaceDamaged, 1, 500),
        (WorkspaceBusy, 1, 503),
        (NotReproducible, 1, 409),
        (ErasableError, 1, 500),
    ],
)
def test_every_error_has_its_exit_code_and_http_status(kind, code, status):
    assert (exit_code(kind("why")), http_status(kind("why"))) == (code, status)


def test_an_error_of_a_caller_s_own_ends_as_its_parent_does():
    class TooManyUsers(Refused):
        pass

    assert (exit_code(TooManyUsers("why")), http_status(TooManyUsers("why"))) == (1, 409)
