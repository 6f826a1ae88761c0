"""The numeric environment: what must be equal for the same training to give the same bytes.

It is recorded with each checkpoint: the machine, and the versions of what the model uses. Our own version is no part of
it: a model's revision says when its bytes change, and golden bytes guard it.
"""

import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import llvmlite.binding

from erasable.grouping import BY_VECTORS
from erasable.models import Model, make_model, source_digest
from erasable.models.blas import blas_libraries
from erasable.seeding.compiled import SOURCE_STAMP
from erasable.training.settings import Config
from erasable.training.state import State

Environment = Mapping[str, str]

_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "gensim", "erasable")
_OF_THE_MACHINE = ("machine", "processor", "libc")
_BELONGING = {"blas": ("blas", "numpy", "scipy"), "numba": ("numba", "llvmlite", "numpy")}
OF_THE_CODE = frozenset({"erasable", "kernels"})
"""Our own version and sources, which 0.1 recorded as well: golden bytes guard that they change nothing."""
OF_0_1 = frozenset({*_OF_THE_MACHINE, "blas", *_LIBRARIES, *OF_THE_CODE})
"""What 0.1 recorded, whatever the model: of these, only what the model uses counts."""


def numeric_environment() -> dict[str, str]:
    """Return the processor, the BLAS kernels and the versions that this process computes with."""
    return dict(_environment())


@cache
def _environment() -> Environment:
    kernels = blas_libraries()
    return {
        "machine": platform.machine(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "libc": " ".join(platform.libc_ver()),
        "blas": "; ".join(sorted({f"{k['internal_api']} {k['version']} {k.get('architecture', '')}" for k in kernels})),
        **{library: version(library) for library in _LIBRARIES},
        "kernels": SOURCE_STAMP,
    }


def environment_of(model: Model, beside: Collection[str] = ()) -> dict[str, str]:
    """Return what the bytes of a model depend on here: the machine, what it uses, and what is used beside it.

    Of a model that is not ours the sources count too; ours are guarded by its revision and by golden bytes.
    """
    uses = (*model.uses, *beside)
    names = (*_OF_THE_MACHINE, *(name for use in uses for name in _BELONGING.get(use, (use,))))
    here = _environment()
    source = source_digest(model)
    found = {name: here[name] if name in here else version(name) for name in dict.fromkeys(names)}
    return {**found, "source": source} if source else found


def environment_for(config: Config) -> dict[str, str]:
    """Return what the checkpoints of a configuration depend on here; groups that are decided anew count as well."""
    return environment_of(make_model(config), used_beside(config))


def used_beside(config: Config) -> tuple[str, ...]:
    """Return the libraries that checkpoints depend on beside the model's own: none unless groups are decided anew."""
    if config.policy != "regroup":
        return ()
    return ("blas", "numba", *(("gensim",) if config.grouping in BY_VECTORS else ()))


def differences(learned_with: Environment, here: Environment) -> list[str]:
    """Say in words how one environment differs from another one; empty if it does not."""
    return [
        f"{name} is {here.get(name, 'absent')} here and was {learned_with.get(name, 'absent')}"
        for name in sorted({*here, *(learned_with.keys() - OF_0_1)})
        if here.get(name) != learned_with.get(name)
    ]


@dataclass(frozen=True)
class Elsewhere:
    """The places of a chain whose checkpoints were made in another numeric environment, and how that differs."""

    places: tuple[int, ...]
    differences: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.places)

    def __str__(self) -> str:
        return "; ".join(self.differences)


def made_elsewhere(state: State) -> Elsewhere:
    """Return which checkpoints of a state were made in another numeric environment, and how that differs from here."""
    config = state.knowledge.config
    if config.revision != config.learner.revision:
        said = f"{config.model} has the revision {config.learner.revision} here and had {config.revision}"
        return Elsewhere(tuple(range(len(state.chain))), (said,))
    here = environment_for(config)
    environments = [link.environment for link in state.chain]
    found = [(one, differences(one, here)) for one in distinct(environments)]
    foreign = [one for one, said in found if said]
    places = tuple(place for place, one in enumerate(environments) if one in foreign)
    return Elsewhere(places, tuple(dict.fromkeys(sentence for _, said in found for sentence in said)))


def distinct(environments: Iterable[Environment]) -> list[Environment]:
    """Return each environment once, in the order in which they come."""
    found: list[Environment] = []
    for environment in environments:
        if environment not in found:
            found.append(environment)
    return found
