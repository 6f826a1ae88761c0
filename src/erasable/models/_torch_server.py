"""What runs in the process of a torch model: it sets torch up, builds networks, trains them and encodes histories.

Only `_torch_process` starts it. Every tensor that comes from an array is a copy: where an array lies in memory could
change the bytes of a product.
"""

import os
import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import sleep
from traceback import extract_tb
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from erasable.errors import ErasableError, Refused
from erasable.models._batches import shuffled
from erasable.models._torch_model import TorchBatch, TorchModel, TorchSettings, array_name
from erasable.models._torch_process import Facts, receive, send
from erasable.models.registry import source_digest
from erasable.progress import Advance
from erasable.seeding import child_key

_NETWORKS_KEPT = 4
_SECONDS_OF_A_LOOK = 1.0
_SEEDS = 2**63
_SHARED = "shared:"
Answer = tuple[Facts, dict[str, NDArray[Any]]]
Given = dict[str, NDArray[Any]]


def serve(parent: int) -> None:
    """Answer questions until the input or the parent ends; what models print goes to standard error."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    torch.set_num_interop_threads(1)
    waiting: SimpleQueue[tuple[Facts, Given]] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, OSError):
            while True:
                waiting.put(receive(questions))
        os._exit(0)  # whoever asked has ended, perhaps in the middle of training

    def follow() -> None:  # a process that the parent forked may hold the other end of the input open
        while os.getppid() == parent:
            sleep(_SECONDS_OF_A_LOOK)
        os._exit(0)

    for task in (read, follow):
        Thread(target=task, daemon=True).start()
    networks = _Networks()
    while True:
        facts, arrays = waiting.get()
        try:
            told, found = networks.answer(facts, arrays, lambda samples: send(answers, {"advance": samples}, {}))
        except Exception as error:  # whatever a model raises is told to whoever asked
            told, found = _failure(error), {}
        send(answers, told, found)


def _failure(error: Exception) -> Facts:
    """Describe an error: what, and where in the model's own file."""
    text = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return {"kind": "memory", "error": text}
    if isinstance(error, ErasableError):
        return {"kind": "refused", "error": text}
    frames = [one for one in extract_tb(error.__traceback__) if "site-packages" not in one.filename]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return {"kind": "model", "error": f"{type(error).__name__}: {text}{where}"}


class _Networks:
    """The networks that histories are encoded with, the last few of them, by the names they were given."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def answer(self, facts: Facts, arrays: Given, advance: Advance) -> Answer:
        """Answer one question."""
        model = _model(facts["model"])
        torch.set_num_threads(model.settings.torch_threads)
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(True)
        match facts["method"]:
            case "start":
                return _started(model, facts["key"])
            case "train":
                network = _with_parameters(model, facts["items"], arrays)
                _train(network, model.settings, facts, arrays, advance)
                state = network.state_dict()
                return {}, {array: state[name].numpy() for name, array in _names(state).items()}
            case "prepare":
                return _prepared(self._network(model, facts, arrays), facts["items"])
            case method:
                network = self._network(model, facts, arrays)
                if network is None:
                    return {"unknown": True}, {}
                return {}, {"answer": _ENCODING[method](network, model.settings, arrays, facts["items"])}

    def _network(self, model: TorchModel, facts: Facts, arrays: Given) -> Any:  # noqa: ANN401 - a module
        """Return the network of a name, or one that is made of the arrays; None if there are none."""
        name = facts["network"]
        if name not in self._kept and any(one.startswith(_SHARED) for one in arrays):
            self._kept[name] = _with_parameters(model, facts["items"], arrays).eval()
            if len(self._kept) > _NETWORKS_KEPT:
                self._kept.popitem(last=False)
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)


def _model(facts: Facts) -> TorchModel:
    """Import a model, from where whoever asked would import it now, and make it from its settings."""
    sys.path[:] = facts["path"]
    try:
        found: Any = import_module(facts["module"])
    except ModuleNotFoundError as error:
        raise Refused(
            f"the process that trains the model can't import {facts['module']} ({error}): put the class into a module "
            "that lies in a folder of sys.path"
        ) from error
    for part in facts["class"].split("."):
        found = getattr(found, part)
    made: TorchModel = found(**facts["settings"])
    if source_digest(made) != facts["digest"]:
        raise Refused(
            f"the source of the model {made.name!r} changed since it was imported: import it again (importlib.reload), "
            "or start Python again"
        )
    return made


def _started(model: TorchModel, key: int) -> Answer:
    """Return the parameters without rows of items, and the shape of such a row; they don't depend on how many."""
    states = []
    for items in (1, 2):
        _seed(key)
        states.append({name: value.numpy() for name, value in model.network(items).state_dict().items()})
    one, two = states
    for name in (*model.item_tables, *one):
        sizes = [state[name].shape[:1] for state in states] if name in one else None
        if name in model.item_tables and sizes != [(1,), (2,)]:
            raise ValueError(f"the network has no {name} with a row for each item: correct item_tables ({sorted(one)})")
        if name not in model.item_tables and one[name].shape != two[name].shape:
            raise ValueError(f"{name} grows with the items: name it in item_tables")
    tables = {name: one[name].shape[1:] for name in model.item_tables}
    names = _names(one)
    return {"tables": tables}, {names[name]: value for name, value in one.items() if name not in tables}


def _seed(key: int) -> None:
    """Seed what a network may draw from: torch, Python's `random` and NumPy's global generator."""
    torch.manual_seed(key % _SEEDS)
    random.seed(key)
    np.random.seed([key >> 32, key % 2**32])  # noqa: NPY002 - a model may use it


def _names(state: Iterable[str]) -> dict[str, str]:
    """Return the name of the array of each parameter; two that differ in other signs than letters are refused."""
    found = {name: array_name(name) for name in state}
    if len({*found.values(), ""}) <= len(found):
        raise ValueError(f"some parameters have names that are alike but for signs, of {sorted(found)}: rename them")
    return found


def _with_parameters(model: TorchModel, items: int, arrays: Given) -> Any:  # noqa: ANN401 - a module
    """Build the network and set its parameters; without any item, the rows of one stay as they are."""
    _seed(0)  # what it draws and does not keep as a parameter is the same in training and in encoding
    network = model.network(max(1, items))
    state = network.state_dict()
    for name, array in _names(state).items():
        if items or name not in model.item_tables:
            state[name].copy_(torch.tensor(arrays[f"{_SHARED}{array}"]))
    return network


def _train(network: Any, settings: TorchSettings, facts: Facts, arrays: Given, advance: Advance) -> None:  # noqa: ANN401 - a module
    """Take Adam's steps, with a step size that falls to 0; what the network draws starts from the stage's key."""
    starts, items = arrays["starts"], torch.tensor(arrays["items"])
    pieces = _pieces(starts, settings.length)
    rows, told = len(items) * facts["epochs"], 0
    order_key, draws_key = facts["keys"]
    _seed(draws_key)
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    steps = facts["epochs"] * -(-len(pieces) // settings.batch)
    rates = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / max(1, steps))
    network.train()
    for epoch in range(facts["epochs"]):
        order = shuffled(len(pieces), np.uint64(child_key(order_key, "epoch", epoch)))
        for low in range(0, len(order), settings.batch):
            chosen = pieces[order[low : low + settings.batch]]
            loss = network.loss(_batch(items, chosen))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rates.step()
            done = int((chosen[:, 2] - chosen[:, 1]).sum())
            told += done
            advance(done)
    advance(rows - told)  # histories of one item teach nothing


def _pieces(starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Cut histories into pieces from their ends: (first row, first row that is new, end) of each.

    A piece begins with the last row of the one before, which its first new row follows. Single rows are left out.
    """
    found = []
    for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        for end in range(high, low, -length):
            new = max(low, end - length)
            found.append((max(low, new - 1), new, end))
    pieces = np.array(found, np.int64).reshape(-1, 3)
    return pieces[pieces[:, 2] - pieces[:, 0] > 1]


def _batch(items: torch.Tensor, pieces: NDArray[np.int64]) -> TorchBatch:
    """Return pieces as a rectangle, padded at the end."""
    sizes = pieces[:, 2] - pieces[:, 0]
    steps = np.arange(int(sizes.max()))
    present = torch.tensor(steps < sizes[:, None])
    places = torch.tensor(pieces[:, :1] + steps)
    found = items[places.clamp(max=len(items) - 1)]
    return TorchBatch(torch.where(present, found, torch.zeros_like(found)), present)


def _prepared(network: Any, items: int) -> Answer:  # noqa: ANN401 - a module
    """Return how wide an encoded history is, and the items' vectors unless the network scores."""
    with torch.inference_mode():
        width = len(network.encode(torch.zeros(1, dtype=torch.long)))
        if hasattr(network, "scores"):
            return {"width": width}, {}
        return {"width": width}, {"vectors": network.item_vectors()[:items].float().numpy()}


def _encoded(network: Any, settings: TorchSettings, arrays: Given, items: int) -> NDArray[np.float32]:  # noqa: ANN401 - a module
    """Encode each history by itself."""
    with torch.inference_mode():
        return np.stack([network.encode(one).float().numpy() for one in _histories(arrays, settings.length)])


def _histories(arrays: Given, length: int) -> Iterator[torch.Tensor]:
    for low, high in zip(arrays["starts"][:-1], arrays["starts"][1:], strict=True):
        yield torch.tensor(arrays["items"][max(low, high - length) : high])


def _scored(network: Any, settings: TorchSettings, arrays: Given, items: int) -> NDArray[np.float32]:  # noqa: ANN401 - a module
    with torch.inference_mode():
        found: NDArray[np.float32] = network.scores(torch.tensor(arrays["person"]))[:items].float().numpy()
    return found


_ENCODING: dict[str, Callable[..., NDArray[np.float32]]] = {"encode": _encoded, "score": _scored}
