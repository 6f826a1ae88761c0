"""`TorchModel`: a model whose network, loss and encoding of a history are PyTorch (extra `torch`, on the CPU).

Nothing here imports torch: a process of its own does (`_torch_process`, `_torch_server`), and answers with arrays.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import WrongSetting
from erasable.models._torch_process import PROCESSES, Code, Facts, Named, TorchProcess, found_in
from erasable.models.base import Arrays, Effort, Model, Parameters, Scores, Stage, frozen
from erasable.models.machine import one_blas_thread
from erasable.models.registry import is_ours, source_digest
from erasable.models.settings import Settings
from erasable.progress import Advance, ignore
from erasable.seeding import child_key, id_keys, normals

if TYPE_CHECKING:
    import torch

PERSON = "person"


class TorchSettings(Settings):
    """The settings that every torch model has: derive from it to add your own.

    Examples
    --------
    >>> class MySettings(TorchSettings):
    ...     factors: int = 32
    ...     "How many numbers stand for an item."
    >>> MySettings(factors=8).torch_threads
    1
    """

    epochs: int = Field(20, ge=1, le=10_000)
    """The total number of training epochs."""

    batch: int = Field(64, ge=1, le=1_000_000)
    """How many histories, or pieces of them, each step uses."""

    learning_rate: float = Field(0.001, gt=0, le=1)
    """Adam's step size at the beginning of a stage; it falls to 0 until its end."""

    length: int = Field(100, ge=1, le=100_000)
    """How many items of a history are looked at together: the latest; training takes longer ones in pieces."""

    torch_threads: int = Field(1, ge=1, le=1024)
    """How many threads torch uses; another number gives other bytes."""


@dataclass(frozen=True, eq=False)
class TorchBatch:
    """Some histories, or pieces of them, for one step.

    Parameters
    ----------
    items : tensor of int64
        People × steps: the numbers of their items, the oldest first; 0 where `present` is false.
    present : tensor of bool
        People × steps: false for the padding at the end of shorter histories.

    Examples
    --------
    >>> TorchBatch(np.array([[4, 2], [3, 0]]), np.array([[True, True], [True, False]])).items.shape
    (2, 2)
    """

    items: "torch.Tensor"
    present: "torch.Tensor"


@dataclass(frozen=True, eq=False)
class PreparedTorch:
    """Shared parameters, the name under which a process keeps their network, and what scoring needs."""

    shared: Arrays
    name: str
    width: int
    """How many numbers encode a history."""
    vectors: NDArray[np.float32] | None
    """A row for each item, whose product with an encoded history is the score; None if the network scores."""


class TorchModel(Model):
    """A model in PyTorch: give a network; loader, seeds, chain, anchors, forgetting and replay are there.

    `network` returns a `torch.nn.Module` with three methods. `loss(batch)` takes a `TorchBatch` and returns one number
    to make smaller. `encode(history)` takes one person's items, the oldest first, and returns a vector.
    `item_vectors()` returns a row for each item, whose product with that vector is its score; a network whose score is
    no product has `scores(encoded)` instead.

    It runs in a process of its own on the CPU, with deterministic algorithms, and with as many threads as the setting
    `torch_threads` says. So the class must be in a module that can be imported. A history is encoded by itself, never
    in a batch with others: bytes would depend on them.

    Parameters
    ----------
    **settings
        Those of the model's `settings_class`, which derives from `TorchSettings`.

    Examples
    --------
    >>> from erasable.models import find_model
    >>> sasrec = find_model("sasrec")(epochs=5)
    >>> isinstance(sasrec, TorchModel), sasrec.uses_time, sasrec.settings.torch_threads
    (True, True, 1)
    """

    settings: TorchSettings
    settings_class: ClassVar[type[Settings]] = TorchSettings
    uses: ClassVar[tuple[str, ...]] = ("torch", "blas")
    strategies: ClassVar[tuple[str, ...]] = ("retrain", "laser")
    item_tables: ClassVar[Mapping[str, float]] = {"items.weight": 0.02}
    """The network's parameters with a row for each item, and the deviation with which a row starts."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        super().__init__(**settings)
        own = type(self)
        if own.__module__ == "__main__" or "<locals>" in own.__qualname__:
            raise WrongSetting(
                f"the model {self.name!r} is written in a notebook, a script or a function, and the process that "
                "trains it can't import it from there: put the class into a file such as mymodel.py, and import it"
            )
        if not isinstance(self.settings, TorchSettings):
            raise WrongSetting(f"the settings of {self.name!r} lack those of torch models: derive from TorchSettings")

    @abstractmethod
    def network(self, items: int) -> "torch.nn.Module":
        """Return the network for so many items; its parameters are set afterwards.

        Parameters
        ----------
        items : int
            How many items there are, at least 1.

        Returns
        -------
        torch.nn.Module
            With the methods `loss`, `encode`, and `item_vectors` or `scores`.
        """

    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters before any stage: rows of items from seed and id, the others from the seed."""
        with PROCESSES.training(self._code) as process:
            told, found = self._ask(process, {"method": "start", "key": child_key(seed, "torch")}, {})
        for name, shape in told["tables"].items():
            rows = normals(id_keys(seed, name, catalogue), int(np.prod(shape)))
            rows = (rows * np.float32(self.item_tables[name])).reshape(len(catalogue), *shape)
            found[array_name(name)] = rows
        return found

    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Train on one stage from these shared parameters."""
        rows = stage.interactions
        if not len(rows):
            return Parameters({name: array.copy() for name, array in shared.items()}, {})
        facts = {
            "method": "train",
            "items": len(rows.items),
            "epochs": stage.epochs,
            "keys": [child_key(stage.seed, "torch stage", stage.position, part) for part in ("order", "draws")],
        }
        with PROCESSES.training(self._code) as process:
            _, found = self._ask(process, facts, {**_histories(rows), **_prefixed(shared)}, effort.advance)
        return Parameters(found, {})

    def prepare(self, shared: Arrays) -> PreparedTorch:
        """Let the process that answers load the network; return the items' vectors."""
        name = uuid4().hex
        facts = {"method": "prepare", "items": self._items_in(shared), "network": name}
        with PROCESSES.answering(self._code) as process:
            told, found = self._ask(process, facts, _prefixed(shared))
        return PreparedTorch(shared, name, told["width"], found.get("vectors"))

    def represent(self, prepared: PreparedTorch, people: Stage, effort: Effort) -> Arrays:
        """Return the encoded history of each person, each by itself."""
        rows = people.interactions
        if not len(rows.users):
            return frozen({PERSON: np.zeros((0, prepared.width), np.float32)})
        return frozen({PERSON: self._answered(prepared, "encode", _histories(rows))})

    def score(self, prepared: PreparedTorch, row: Arrays, owned: NDArray[np.int32]) -> Scores:
        """Return the product of the encoded history with each item's vector, or what the network scores."""
        if prepared.vectors is None:
            return self._answered(prepared, "score", row)
        with one_blas_thread():
            found: Scores = prepared.vectors @ row[PERSON]
        return found

    def _answered(self, prepared: PreparedTorch, method: str, arrays: Named) -> NDArray[np.float32]:
        """Ask about a network; one that the process does not know (any more) is sent along."""
        facts = {"method": method, "items": self._items_in(prepared.shared), "network": prepared.name}
        with PROCESSES.answering(self._code) as process:
            told, found = self._ask(process, facts, arrays)
            if told.get("unknown"):
                _, found = self._ask(process, facts, {**arrays, **_prefixed(prepared.shared)})
        return found["answer"]

    @property
    def _code(self) -> Code:
        return Code("erasable" if is_ours(self) else type(self).__module__, source_digest(self))

    def _items_in(self, shared: Arrays) -> int:
        return len(shared[array_name(next(iter(self.item_tables)))])

    def _ask(self, process: TorchProcess, facts: Facts, arrays: Named, advance: Advance = ignore) -> tuple[Facts, Any]:
        own = type(self)
        model = {
            "module": own.__module__,
            "class": own.__qualname__,
            "settings": self.settings.model_dump(mode="json"),
            "digest": self._code.digest,
            "path": found_in(),
        }
        return process.ask({**facts, "model": model}, arrays, advance)


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def array_name(parameter: str) -> str:
    """Return the name of a network's parameter in a checkpoint: letters only, in which a scan can mistake nobody's id.

    >>> array_name("blocks.0.output.weight")
    'blocks_zero_output_weight'
    """
    spelled = "".join(f"_{_DIGITS[int(one)]}_" if one in "0123456789" else one for one in parameter.lower())
    return "_".join(re.findall("[a-z]+", spelled))


def _prefixed(shared: Arrays) -> dict[str, NDArray[Any]]:
    """Return shared parameters under names that no other array of a question has."""
    return {f"shared:{name}": array for name, array in shared.items()}


def _histories(rows: Interactions) -> dict[str, NDArray[Any]]:
    """Return where each person's history begins, and the numbers of their items in their own order."""
    order = np.lexsort((rows.item_index if rows.time is None else rows.time, rows.user_index))
    return {"starts": rows.user_starts, "items": rows.item_index[order].astype(np.int64)}
