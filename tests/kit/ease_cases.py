"""What the tests of EASE share: its closed form by numpy, and changes of who has what."""

import numpy as np

from erasable.models import Effort
from erasable.models.base import Change
from kit.model_suite import scorer
from kit.tables import stage

LAMBDA = 20.0


def train(model, rows, threads=1):
    return model.train(model.start(rows.items, 0), stage(rows), Effort(threads)).shared


def dense(rows):
    matrix = np.zeros((len(rows.users), len(rows.items)))
    matrix[rows.user_index, rows.item_index] = 1
    return matrix


def closed_form(rows, regularisation=LAMBDA):
    """Return the paper's scores of everyone: X B, B = −P / diag P with a diagonal of 0."""
    matrix = dense(rows)
    inverse = np.linalg.inv(matrix.T @ matrix + regularisation * np.eye(matrix.shape[1]))
    weights = -inverse / inverse.diagonal()
    np.fill_diagonal(weights, 0)
    return matrix @ weights


def scores(model, shared, rows):
    score = scorer(model, shared)
    return np.array([score({}, rows.items_at(user)) for user in range(len(rows.users))])


def contents(arrays):
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def nobody(rows):
    return rows.select(np.zeros(len(rows), bool))


def taken(rows, users):
    return Change(rows.of_users(users), nobody(rows), rows.without(users))


def added(rows, users):
    return Change(nobody(rows), rows.of_users(users), rows)


def pruned(rows, seed):
    """Return the rows without some users and some items of others, and the change that leads there."""
    generator = np.random.default_rng(seed)
    leaves = generator.random(len(rows.users)) < 0.2
    prunes = generator.random(len(rows.users)) < 0.2
    drops = leaves[rows.user_index] | (prunes[rows.user_index] & (generator.random(len(rows)) < 0.5))
    touched = [rows.users[int(user)] for user in np.unique(rows.user_index[drops])]
    after = rows.select(~drops)
    return after, Change(rows.of_users(touched), after.of_users(touched), after)


def reverse(change, before):
    """Return the way back to the rows as they were."""
    return Change(change.given, change.taken, before)
