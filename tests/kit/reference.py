"""NMF, DMF and their training in plain NumPy, 64-bit: slow, written from the design and not from the kernels.

The loss of a batch is the mean binary cross entropy over its samples; a sample is a positive with target
rating / scale maximum, or a sampled item that the user has not, with target 0. A step changes the rows that
occur in the batch and the network, by Adam with the bias correction of the step's number in the stage.
"""

from dataclasses import dataclass, field

import numpy as np

from erasable.data import Ids, Interactions
from erasable.models import Model, Stage
from erasable.models._batches import shuffled
from erasable.seeding import child_key, id_keys, mix, normals

Arrays = dict[str, np.ndarray]
CLAMP = 1e-4


@dataclass
class Samples:
    """User, item and target of each sample of a batch."""

    users: np.ndarray
    items: np.ndarray
    targets: np.ndarray


class ReferenceNmf:
    """Generalised matrix factorisation on the first half of a row, two layers on the second half."""

    width = 32
    row_deviation = 0.01

    def logits(self, values: Arrays, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self._forward(values, values["user"][users], values["item"][items])["logit"]

    def loss(self, values: Arrays, samples: Samples) -> float:
        """Return the mean cross entropy, computed from the logit: softplus(logit) − target · logit."""
        logit = self.logits(values, samples.users, samples.items)
        return float(np.mean(np.logaddexp(0, logit) - samples.targets * logit))

    def slopes(self, values: Arrays, samples: Samples) -> Arrays:
        """Return the derivative of the loss by every array, by the chain rule."""
        alpha, beta = values["user"][samples.users], values["item"][samples.items]
        seen = self._forward(values, alpha, beta)
        error = (1 / (1 + np.exp(-seen["logit"])) - samples.targets) / len(samples.targets)
        second = np.outer(error, values["hidden_out"]) * (seen["second"] > 0)
        first = (second @ values["hidden"].T) * (seen["first"] > 0)
        product = error[:, None] * values["product_out"]
        slopes = {
            "user_in": alpha[:, 16:].T @ first,
            "item_in": beta[:, 16:].T @ first,
            "first_bias": first.sum(axis=0),
            "hidden": seen["first"].T @ second,
            "second_bias": second.sum(axis=0),
            "product_out": error @ (alpha[:, :16] * beta[:, :16]),
            "hidden_out": error @ seen["second"],
            "bias_out": error.sum(keepdims=True),
        }
        by_user = np.hstack([product * beta[:, :16], first @ values["user_in"].T])
        by_item = np.hstack([product * alpha[:, :16], first @ values["item_in"].T])
        return slopes | _by_row(values, samples, by_user, by_item)

    def _forward(self, values: Arrays, alpha: np.ndarray, beta: np.ndarray) -> Arrays:
        first = _relu(alpha[:, 16:] @ values["user_in"] + beta[:, 16:] @ values["item_in"] + values["first_bias"])
        second = _relu(first @ values["hidden"] + values["second_bias"])
        logit = (alpha[:, :16] * beta[:, :16]) @ values["product_out"] + second @ values["hidden_out"]
        return {"first": first, "second": second, "logit": logit + values["bias_out"]}


class ReferenceDmf:
    """Two layers for each side, each with a relu; the score is the cosine, clamped away from 0 and 1."""

    width = 16
    row_deviation = 0.1

    def cosines(self, values: Arrays, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        left = self._tower(values, "user", values["user"][users])
        right = self._tower(values, "item", values["item"][items])
        return _cosine(left["output"], right["output"])

    def loss(self, values: Arrays, samples: Samples) -> float:
        """Return the mean cross entropy of the clamped cosine."""
        score = np.clip(self.cosines(values, samples.users, samples.items), CLAMP, 1 - CLAMP)
        return float(np.mean(-samples.targets * np.log(score) - (1 - samples.targets) * np.log(1 - score)))

    def slopes(self, values: Arrays, samples: Samples) -> Arrays:
        """Return the derivative of the loss by every array, by the chain rule; a clamped cosine has none."""
        left = self._tower(values, "user", values["user"][samples.users])
        right = self._tower(values, "item", values["item"][samples.items])
        cosine = _cosine(left["output"], right["output"])
        inside = (cosine > CLAMP) & (cosine < 1 - CLAMP)
        score = np.where(inside, cosine, 0.5)
        by_score = (1 - samples.targets) / (1 - score) - samples.targets / score
        by_cosine = np.where(inside, by_score, 0.0) / len(samples.targets)
        user_slopes, by_user = self._tower_slopes(values, "user", left, by_cosine, right["output"])
        item_slopes, by_item = self._tower_slopes(values, "item", right, by_cosine, left["output"])
        return user_slopes | item_slopes | _by_row(values, samples, by_user, by_item)

    def _tower(self, values: Arrays, side: str, rows: np.ndarray) -> Arrays:
        first = _relu(rows @ values[f"{side}_first"] + values[f"{side}_first_bias"])
        output = _relu(first @ values[f"{side}_second"] + values[f"{side}_second_bias"])
        return {"rows": rows, "first": first, "output": output}

    def _tower_slopes(
        self, values: Arrays, side: str, seen: Arrays, by_cosine: np.ndarray, other: np.ndarray
    ) -> tuple[Arrays, np.ndarray]:
        own_unit, other_unit = _unit(seen["output"]), _unit(other)
        cosine = (own_unit * other_unit).sum(axis=1, keepdims=True)
        turned = (other_unit - cosine * own_unit) / _norm(seen["output"])
        output = by_cosine[:, None] * turned * (seen["output"] > 0)
        first = (output @ values[f"{side}_second"].T) * (seen["first"] > 0)
        slopes = {
            f"{side}_first": seen["rows"].T @ first,
            f"{side}_first_bias": first.sum(axis=0),
            f"{side}_second": seen["first"].T @ output,
            f"{side}_second_bias": output.sum(axis=0),
        }
        return slopes, first @ values[f"{side}_first"].T


REFERENCES = {"nmf": ReferenceNmf(), "dmf": ReferenceDmf()}


@dataclass
class ReferenceAdam:
    """Adam (Kingma and Ba, 2015) on named arrays; of `user` and `item` only the rows named change."""

    values: Arrays
    rate: float
    steps: int = 0
    first: Arrays = field(default_factory=dict)
    second: Arrays = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.first = {name: np.zeros_like(value) for name, value in self.values.items()}
        self.second = {name: np.zeros_like(value) for name, value in self.values.items()}

    def step(self, slopes: Arrays, rows: dict[str, np.ndarray]) -> None:
        self.steps += 1
        for name, value in self.values.items():
            where = rows.get(name, slice(None))
            slope = slopes[name][where]
            self.first[name][where] = 0.9 * self.first[name][where] + 0.1 * slope
            self.second[name][where] = 0.999 * self.second[name][where] + 0.001 * slope**2
            first = self.first[name][where] / (1 - 0.9**self.steps)
            second = self.second[name][where] / (1 - 0.999**self.steps)
            value[where] -= self.rate * first / (np.sqrt(second) + 1e-8)


def train_reference(trained: Model, shared: Arrays, stage: Stage) -> Arrays:
    """Train one stage and return all arrays, the users' rows under "user"."""
    model, settings = REFERENCES[trained.name], trained.settings
    start = {"user": starting_rows(model, stage.interactions.users, stage.seed), **shared}
    adam = ReferenceAdam({name: array.astype(np.float64) for name, array in start.items()}, settings.learning_rate)
    units = max(1, settings.batch // (1 + settings.negatives))
    for epoch in range(stage.epochs):
        order = shuffled(len(stage.interactions), stage_key(stage, "order", epoch))
        for low in range(0, len(order), units):
            samples = samples_of(stage, order[low : low + units], settings.negatives, epoch)
            rows = {"user": np.unique(samples.users), "item": np.unique(samples.items)}
            adam.step(model.slopes(adam.values, samples), rows)
    return adam.values


def starting_rows(model: ReferenceNmf | ReferenceDmf, users: Ids, seed: int) -> np.ndarray:
    """Return the rows that users start from."""
    return normals(id_keys(seed, "user", users), model.width) * np.float32(model.row_deviation)


def samples_of(stage: Stage, positives: np.ndarray, negatives: int, epoch: int) -> Samples:
    """Return some positives, each followed by items that its user has not (none if they have all)."""
    rows = stage.interactions
    key = np.array([stage_key(stage, "negatives", epoch)])
    triples = []
    for positive in positives:
        user = rows.user_index[positive]
        triples.append((user, rows.item_index[positive], rows.rating[positive] / stage.scale.high))
        missing = missing_items(rows, user)
        for number in range(1, negatives + 1):
            bits = int(mix(key, np.array([int(positive) * (1 + negatives) + number], dtype=np.uint64))[0])
            if missing:
                triples.append((user, missing[(bits >> 32) * len(missing) >> 32], 0.0))
    users, items, targets = zip(*triples, strict=True)
    return Samples(np.array(users), np.array(items), np.array(targets, dtype=np.float64))


def missing_items(rows: Interactions, user: int) -> list[int]:
    """Return the numbers of the items that a user has not, ascending."""
    owned = set(rows.item_index[rows.user_index == user].tolist())
    return [item for item in range(len(rows.items)) if item not in owned]


def stage_key(stage: Stage, purpose: str, epoch: int) -> np.uint64:
    """Return the key under which a stage draws for a purpose in an epoch."""
    return np.uint64(child_key(stage.seed, "stage", stage.position, purpose, epoch))


def finite_differences(model: ReferenceNmf | ReferenceDmf, values: Arrays, samples: Samples, name: str) -> np.ndarray:
    """Return the derivative of the loss by one array, each element nudged both ways."""
    nudge = 1e-6
    slopes = np.zeros_like(values[name])
    for place in np.ndindex(slopes.shape):
        nudged = values[name].copy()
        nudged[place] += nudge
        above = model.loss(values | {name: nudged}, samples)
        nudged[place] -= 2 * nudge
        slopes[place] = (above - model.loss(values | {name: nudged}, samples)) / (2 * nudge)
    return slopes


def _by_row(values: Arrays, samples: Samples, by_user: np.ndarray, by_item: np.ndarray) -> Arrays:
    user, item = np.zeros_like(values["user"]), np.zeros_like(values["item"])
    np.add.at(user, samples.users, by_user)
    np.add.at(item, samples.items, by_item)
    return {"user": user, "item": item}


def _relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


def _norm(rows: np.ndarray) -> np.ndarray:
    return np.maximum(np.sqrt((rows**2).sum(axis=1, keepdims=True)), 1e-6)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / _norm(rows)


def _cosine(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (_unit(left) * _unit(right)).sum(axis=1)
