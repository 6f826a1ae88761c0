"""The PyTorch side of `speed.py`: plain modules, dense Adam, one timed run, in a venv without erasable.

It is given its samples ready-made, so its time holds gradient steps alone; ours holds shuffling and
sampling as well.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

WIDTH, FIRST, SECOND = 16, 64, 32
CLAMP, SMALLEST_NORM = 1e-4, 1e-6
WARM_UP_STEPS = 30


def two_layers(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, FIRST), nn.ReLU(), nn.Linear(FIRST, SECOND), nn.ReLU())


class Nmf(nn.Module):
    """A product of two embeddings and two layers on two more, joined into one output."""

    def __init__(self, users: int, items: int) -> None:
        super().__init__()
        self.product_user, self.product_item = nn.Embedding(users, WIDTH), nn.Embedding(items, WIDTH)
        self.layers_user, self.layers_item = nn.Embedding(users, WIDTH), nn.Embedding(items, WIDTH)
        self.layers = two_layers(2 * WIDTH)
        self.output = nn.Linear(WIDTH + SECOND, 1)

    def loss(self, users: torch.Tensor, items: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        product = self.product_user(users) * self.product_item(items)
        hidden = self.layers(torch.cat([self.layers_user(users), self.layers_item(items)], dim=1))
        scores = self.output(torch.cat([product, hidden], dim=1)).squeeze(1)
        return nn.functional.binary_cross_entropy_with_logits(scores, targets)


class Dmf(nn.Module):
    """A tower of two layers for each side; the score is the clamped cosine of their outputs."""

    def __init__(self, users: int, items: int) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(users, WIDTH), nn.Embedding(items, WIDTH)
        self.user_tower, self.item_tower = two_layers(WIDTH), two_layers(WIDTH)

    def loss(self, users: torch.Tensor, items: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        sides = self.user_tower(self.user(users)), self.item_tower(self.item(items))
        cosine = nn.functional.cosine_similarity(*sides, eps=SMALLEST_NORM).clamp(CLAMP, 1 - CLAMP)
        return nn.functional.binary_cross_entropy(cosine, targets)


class Training:
    """Gradient steps over ready-made samples, round and round."""

    def __init__(self, options: argparse.Namespace) -> None:
        names = ("users", "items", "targets")
        self.samples = [torch.from_numpy(np.load(options.samples / f"{name}.npy")) for name in names]
        sizes = (int(self.samples[0].max()) + 1, int(self.samples[1].max()) + 1)
        self.model = {"nmf": Nmf, "dmf": Dmf}[options.model](*sizes)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=0.001, fused=options.fused or None)
        self.batch, self.place = options.batch, 0

    def step(self) -> None:
        if self.place + self.batch > len(self.samples[0]):
            self.place = 0
        batch = [column[self.place : self.place + self.batch] for column in self.samples]
        self.place += self.batch
        self.optimiser.zero_grad()
        self.model.loss(*batch).backward()
        self.optimiser.step()


def samples_per_second(training: Training, seconds: float) -> float:
    """Time whole steps until the seconds are over."""
    for _ in range(WARM_UP_STEPS):
        training.step()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        training.step()
        steps += 1
    return steps * training.batch / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["nmf", "dmf"], required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--fused", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    rate = samples_per_second(Training(options), options.seconds)
    print(json.dumps({"samples_per_second": rate, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
