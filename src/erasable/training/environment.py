"""The numeric environment: what must be equal for the same training to give the same bytes.

It is recorded with each checkpoint: the machine, and the versions of what the model uses. Our own version is no part of
it: a model's revision says when its bytes change, and golden bytes guard it.
"""

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import llvmlite.binding

from erasable.errors import UnknownModel, WrongSetting
from erasable.grouping import BY_VECTORS, find_grouping, libraries_of
from erasable.grouping.registry import BUILT_IN
from erasable.models import Model, function_digest, is_ours, make_model, revisions_beneath, source_digest
from erasable.models.blas import blas_libraries
from erasable.seeding.compiled import SOURCE_STAMP
from erasable.training.settings import Config
from erasable.training.state import State

Environment = Mapping[str, str]
NOTHING: Environment = {}
GROUPING_SOURCE = "grouping source"
_CHANGED = {
    "source": "the source files of the model have changed since",
    GROUPING_SOURCE: "the source files of the grouping have changed since",
}

_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "gensim", "erasable")
_OF_THE_MACHINE = ("machine", "processor", "libc")
_BELONGING = {
    **dict.fromkeys(("blas", "numpy", "scipy"), ("blas", "numpy", "scipy")),
    "numba": ("numba", "llvmlite", "numpy"),
}
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


def environment_of(model: Model, beside: Environment = NOTHING) -> dict[str, str]:
    """Return what the bytes of a model depend on here: the machine, what it uses, and what counts beside it.

    Of a model that is not ours NumPy and the sources count too, and the revisions of what it uses and derives from of
    ours; ours are guarded by its revision and by golden bytes.
    """
    here, source = _environment(), source_digest(model)
    uses = model.uses if is_ours(model) else ("numpy", *model.uses)
    found = {**beside, **{name: here[name] for name in _OF_THE_MACHINE}, **_versions(uses)}
    return {**found, **revisions_beneath(model), **({"source": source} if source else {})}


def environment_for(config: Config) -> dict[str, str]:
    """Return what the checkpoints of a configuration depend on here; groups that are decided anew count as well."""
    return environment_of(make_model(config), used_beside(config))


def used_beside(config: Config) -> dict[str, str]:
    """Return what checkpoints depend on beside the model: nothing unless groups are decided anew.

    Then the libraries that groups are computed with count, and the sources of a grouping that is not ours.
    """
    if config.policy != "regroup":
        return {}
    if config.grouping in BUILT_IN:
        return _versions(("blas", "numba", *(("gensim",) if config.grouping in BY_VECTORS else ())))
    try:
        labelling = find_grouping(config.grouping)
    except WrongSetting as error:
        raise UnknownModel(f"groups are decided anew here, and that is not possible: {error}") from error
    return {**_versions(("blas", "numba", *libraries_of(labelling))), GROUPING_SOURCE: _source_of(labelling)}


@cache
def _source_of(labelling: Callable[..., object]) -> str:
    """Return the digest of a grouping's sources, taken once: what was imported is what decides groups."""
    return function_digest(labelling)


def _versions(uses: Iterable[str]) -> dict[str, str]:
    """Return the versions here of what is used, and of what belongs to it."""
    here, names = _environment(), (name for use in uses for name in _BELONGING.get(use, (use,)))
    return {name: here[name] if name in here else version(name) for name in dict.fromkeys(names)}


def differences(learned_with: Environment, here: Environment) -> list[str]:
    """Say in words how one environment differs from another one; empty if it does not."""
    return [
        _CHANGED.get(name) or f"{name} is {here.get(name, 'absent')} here and was {learned_with.get(name, 'absent')}"
        for name in sorted({*here, *(learned_with.keys() - OF_0_1)})
        if here.get(name) != learned_with.get(name)
    ]


@dataclass(frozen=True)
class Elsewhere:
    """The places of a chain whose checkpoints were made in another numeric environment, and how that differs."""

    places: tuple[int, ...]
    differences: tuple[str, ...]
    other_code: bool = False
    """Whether nothing differs but the code of the model or the grouping."""

    def __bool__(self) -> bool:
        return bool(self.places)

    def __str__(self) -> str:
        return "; ".join(self.differences)

    @property
    def how(self) -> str:
        """How it was learned: with other code, if nothing else differs, or in another numeric environment."""
        return "with other code" if self.other_code else "in another numeric environment"


def made_elsewhere(state: State) -> Elsewhere:
    """Return which checkpoints of a state were made in another numeric environment, and how that differs from here."""
    config = state.knowledge.config
    if config.revision != config.learner.revision:
        said = f"{config.model} has the revision {config.learner.revision} here and had {config.revision}"
        return Elsewhere(tuple(range(len(state.chain))), (said,), other_code=True)
    here = environment_for(config)
    environments = [link.environment for link in state.chain]
    found = [(one, differences(one, here)) for one in distinct(environments)]
    foreign = [one for one, said in found if said]
    places = tuple(place for place, one in enumerate(environments) if one in foreign)
    sentences = tuple(dict.fromkeys(sentence for _, said in found for sentence in said))
    return Elsewhere(places, sentences, {*sentences} <= {*_CHANGED.values()})


def distinct(environments: Iterable[Environment]) -> list[Environment]:
    """Return each environment once, in the order in which they come."""
    found: list[Environment] = []
    for environment in environments:
        if environment not in found:
            found.append(environment)
    return found
