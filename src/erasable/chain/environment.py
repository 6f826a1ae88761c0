"""The numeric environment: what must be equal for the same training to give the same bytes.

It is recorded with each checkpoint: the machine, and the versions of what the model uses. Our own version does not
count: a model's revision says when its bytes change, and tests compare golden bytes.
"""

import platform
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

import llvmlite.binding

from erasable.chain.settings import Config
from erasable.errors import UnknownModel, WrongSetting
from erasable.grouping.registry import BUILT_IN, BY_VECTORS, check_grouping, find_grouping, libraries_of
from erasable.models.base import Model
from erasable.models.machine import blas_libraries
from erasable.models.registry import function_digest, is_ours, make_model, revisions_beneath, source_digest
from erasable.seeding.compiled import SOURCE_STAMP

Environment = Mapping[str, str]
NOTHING: Environment = {}
GROUPING_SOURCE = "grouping source"
CHANGED_CODE = {
    "source": "the source files of the model have changed since",
    GROUPING_SOURCE: "the source files of the grouping have changed since",
}

_OF_EXTRAS = ("gensim",)
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", *_OF_EXTRAS, "erasable")
_OF_THE_MACHINE = ("machine", "processor", "libc")
_BELONGING = {
    **dict.fromkeys(("blas", "numpy", "scipy"), ("blas", "numpy", "scipy")),
    "numba": ("numba", "llvmlite", "numpy"),
}
OF_THE_CODE = frozenset({"erasable", "kernels"})
"""Our own version and sources, which 0.1 recorded as well; golden bytes show that they change nothing."""
OF_0_1 = frozenset({*_OF_THE_MACHINE, "blas", *_LIBRARIES, *OF_THE_CODE})
"""What 0.1 recorded for every model; of these, only what the model uses counts."""


def numeric_environment() -> dict[str, str]:
    """Return the processor, the BLAS kernels and the library versions of this process."""
    return dict(_environment())


@cache
def _environment() -> Environment:
    kernels = blas_libraries()
    return {
        "machine": platform.machine(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "libc": " ".join(platform.libc_ver()),
        "blas": "; ".join(sorted({f"{k['internal_api']} {k['version']} {k.get('architecture', '')}" for k in kernels})),
        **{library: version(library) for library in _LIBRARIES if library not in _OF_EXTRAS or find_spec(library)},
        "kernels": SOURCE_STAMP,
    }


def environment_of(model: Model, beside: Environment = NOTHING) -> dict[str, str]:
    """Return what a model's bytes depend on here: the machine, what it uses, and what `beside` adds.

    For a model that is not ours, NumPy, its sources and the revisions of our code that it builds on count too. Ours
    have a revision, and tests that compare golden bytes.
    """
    here, source = _environment(), source_digest(model)
    uses = model.uses if is_ours(model) else ("numpy", *model.uses)
    found = {**beside, **{name: here[name] for name in _OF_THE_MACHINE}, **_versions(uses)}
    return {**found, **revisions_beneath(model), **({"source": source} if source else {})}


def environment_for(config: Config) -> dict[str, str]:
    """Return what the checkpoints of a configuration depend on here, including the grouping if it is recomputed."""
    return environment_of(make_model(config), used_beside(config))


def used_beside(config: Config) -> dict[str, str]:
    """Return what checkpoints depend on besides the model: nothing, unless the policy recomputes groups.

    Then the libraries that compute groups count, and the sources of a grouping that is not ours.
    """
    if config.policy != "regroup":
        return {}
    try:
        check_grouping(config.grouping)
        if config.grouping in BUILT_IN:
            return _versions(("blas", "numba", *(("gensim",) if config.grouping in BY_VECTORS else ())))
        labelling = find_grouping(config.grouping)
    except WrongSetting as error:
        raise UnknownModel(f"the policy regroup computes groups again, which is not possible here: {error}") from error
    return {**_versions(("blas", "numba", *libraries_of(labelling))), GROUPING_SOURCE: _source_of(labelling)}


@cache
def _source_of(labelling: Callable[..., object]) -> str:
    """Return the digest of a grouping's sources, computed once: the imported code is what runs."""
    return function_digest(labelling)


def _versions(uses: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of what is used, and of what belongs to it."""
    here, names = _environment(), (name for use in uses for name in _BELONGING.get(use, (use,)))
    return {name: here[name] if name in here else version(name) for name in dict.fromkeys(names)}


def differences(learned_with: Environment, here: Environment) -> list[str]:
    """Describe how two environments differ; empty if they do not."""
    return [
        CHANGED_CODE.get(name)
        or f"{name} is {here.get(name, 'absent')} here and was {learned_with.get(name, 'absent')}"
        for name in sorted({*here, *(learned_with.keys() - OF_0_1)})
        if here.get(name) != learned_with.get(name)
    ]


def distinct(environments: Iterable[Environment]) -> list[Environment]:
    """Return each distinct environment once, in order."""
    found: list[Environment] = []
    for environment in environments:
        if environment not in found:
            found.append(environment)
    return found
