"""The network of `two-tower`: a tower for a person's own items, and one for each item; their product is the score."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from erasable.models._torch_model import TorchBatch


class TwoTowerNetwork(nn.Module):
    """A person is the mean row of their own items, an item its own row, each with what a small network adds to it."""

    def __init__(self, items: int, settings: Any) -> None:  # noqa: ANN401 - `TwoTowerSettings`, whose file needs no torch
        super().__init__()
        width, hidden = settings.factors, settings.hidden
        self.owned = nn.Embedding(items, width)
        self.offered = nn.Embedding(items, width)
        self.popularity = nn.Embedding(items, 1)
        self.user_tower = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.item_tower = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.masked = settings.masked

    def forward(self, mean: Tensor) -> Tensor:
        """Return people, given the mean row of their items."""
        person = mean + self.user_tower(mean)
        return torch.cat([person, torch.ones(len(person), 1)], dim=1)  # the last number meets the popularity of an item

    def loss(self, batch: TorchBatch) -> Tensor:
        """Return the mean cross entropy of the items that are masked, given the others, among all items."""
        are_masked = batch.present & (torch.rand(batch.items.shape) < self.masked)
        masked, told = (self._by_item(batch, part) for part in (are_masked, batch.present & ~are_masked))
        people = self(told @ self.owned.weight / told.sum(dim=1, keepdim=True).clamp(min=1))
        likely = functional.log_softmax(people @ self.item_vectors().T, dim=1)
        return -(likely * masked).sum() / masked.sum().clamp(min=1)

    def _by_item(self, batch: TorchBatch, chosen: Tensor) -> Tensor:
        """Return people × items: 1 where an item is chosen, else 0."""
        found = torch.zeros(len(batch.items), len(self.owned.weight))
        return found.scatter_add(1, batch.items, chosen.float())

    def encode(self, history: Tensor) -> Tensor:
        """Return one person, all of whose items count."""
        person: Tensor = self(self.owned(history).mean(dim=0, keepdim=True))[0]
        return person

    def item_vectors(self) -> Tensor:
        """Return the row of each item: its product with a person is the score."""
        rows = self.offered.weight
        return torch.cat([rows + self.item_tower(rows), self.popularity.weight], dim=1)
