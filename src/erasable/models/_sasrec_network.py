"""The network of `sasrec`: causal self-attention over a person's sequence (Kang and McAuley, 2018), and a softmax.

Copy this file to begin a network of your own: `loss`, `encode` and `item_vectors` are all that `TorchModel` calls.
"""

from math import log
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from erasable.models._torch_model import TorchBatch


class SasrecNetwork(nn.Module):
    """A person is the output at the last step of their sequence; an item's row is both its input and its output."""

    def __init__(self, items: int, settings: Any) -> None:  # noqa: ANN401 - `SasrecSettings`, whose file needs no torch
        super().__init__()
        width, dropout = settings.factors, settings.dropout
        self.items = nn.Embedding(items, width)
        self.positions = nn.Embedding(settings.length, width)
        self.blocks = nn.ModuleList(_Block(width, settings.heads, dropout) for _ in range(settings.blocks))
        self.last = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.sampled = settings.sampled
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, sequences: Tensor) -> Tensor:
        """Return the output at each step; padding stands at the end, where no earlier step sees it."""
        hidden = self.items(sequences) * self.items.embedding_dim**0.5
        hidden = self.dropout(hidden + self.positions.weight[: sequences.shape[1]])
        for block in self.blocks:
            hidden = block(hidden)
        output: Tensor = self.last(hidden)
        return output

    def loss(self, batch: TorchBatch) -> Tensor:
        """Return the mean cross entropy of each next item, at all steps of all sequences at once."""
        told = batch.present[:, 1:]
        outputs, targets = self(batch.items[:, :-1])[told], batch.items[:, 1:][told]
        return softmax_loss(outputs, self.items.weight, targets, self.sampled)

    def encode(self, history: Tensor) -> Tensor:
        """Return the output at the last step of one person's sequence."""
        output: Tensor = self(history[None])[0, -1]
        return output

    def item_vectors(self) -> Tensor:
        """Return the row of each item: its product with a person is the score."""
        return self.items.weight


class _Block(nn.Module):
    """Attention to earlier steps, then a small network for each step; each is normalised first, and added."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the output at each step."""
        people, steps, width = hidden.shape
        parts = self.queries_keys_values(self.before_attention(hidden)).chunk(3, dim=-1)
        shape = people, steps, self.heads, width // self.heads
        queries, keys, values = (part.view(shape).transpose(1, 2) for part in parts)
        attended = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        attended = attended.transpose(1, 2).reshape(people, steps, width)
        hidden = hidden + self.dropout(self.output(attended))
        return hidden + self.dropout(self.network(self.before_network(hidden)))


def softmax_loss(outputs: Tensor, items: Tensor, targets: Tensor, sampled: int) -> Tensor:
    """Return the mean cross entropy of the targets among all items, or among sampled ones.

    The sum over all items is then estimated without bias: each of the n uniform draws that is not the target stands for
    items ÷ n others. The target itself is always there, so it stands for itself alone (no correction).
    """
    if not 0 < sampled < len(items):
        return functional.cross_entropy(outputs @ items.T, targets)
    drawn = torch.randint(len(items), (sampled,))
    others = outputs @ items[drawn].T + log(len(items) / sampled)
    others = others.masked_fill(drawn == targets[:, None], -torch.inf)
    own = (outputs * items[targets]).sum(dim=1, keepdim=True)
    return functional.cross_entropy(torch.cat([own, others], dim=1), torch.zeros_like(targets))
