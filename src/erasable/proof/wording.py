"""The sentences of a certificate, each under the condition that makes it true of the state that it is about."""

from typing import Any

from erasable.proof.statement import WHOLE, Scope
from erasable.training import Config, Knowledge

_STATES = (
    "Whoever holds the signing key states that what was asked for was erased as this certificate says, and that "
    "whatever in the model had learned from it was removed, or made again without it."
)
_BY_CONSTRUCTION = (
    "The parameters of this version are, by construction, what training from scratch gives on the data that is left"
)
_REPEATS = (
    "repeats that training and compares every byte, in the numeric environment named here and as long as this version "
    "is the current one."
)
_SEARCHED = (
    "After the erasure the files of the workspace were searched for what was erased, in the ways that are listed, and "
    "nothing was found."
)
_OUTSIDE_A_WORKSPACE = (
    "It says nothing about copies outside this workspace: the input file, exports, backups, snapshots, and blocks that "
    "a disk has freed but not overwritten."
)
_OUTSIDE_MEMORY = (
    "It says nothing about copies outside this recommender: the input, exports, folders that it was saved into, and "
    "memory that was freed but not overwritten."
)
_SCALE = (
    "The rating scale was not declared: it was recognised from data, of which the erased data may have been a part."
)
_SIGNATURE = (
    "The signature shows that nothing was changed since, not that its holder is honest: the replay is what can be "
    "checked."
)
_FROZEN = "found in the data and frozen by version 0.1"
_LIST = (
    "so that an old file does not bring back what was erased. Nobody can tell whose it is without the key of the list"
)
_LIST_ON_DISK = (
    f"kept on a do-not-learn list outside the workspace, {_LIST}, which is kept in another place. `erasable learn DATA "
    "--into DIR --more --readmit ID` takes someone off it who wants to come back."
)
_LIST_IN_MEMORY = (
    f"kept on a do-not-learn list in memory, {_LIST}. `Recommender.learn_more` takes someone off it who wants to come "
    "back, if they are named with `readmit`."
)


def proves(knowledge: Knowledge, on_disk: bool) -> str:
    """Say what a certificate proves."""
    groups = ", in groups as the policy says," if _has_groups(knowledge.config) else ""
    command = "`erasable verify`" if on_disk else "`Recommender.verify`"
    said = [_STATES, f"{_BY_CONSTRUCTION}{groups} with the settings named here and the seed that is held.", command]
    said.append(_REPEATS)
    return " ".join([*said, _SEARCHED] if on_disk else said)


def does_not_prove(knowledge: Knowledge, on_disk: bool) -> str:
    """Say what a certificate does not prove."""
    said = [_OUTSIDE_A_WORKSPACE if on_disk else _OUTSIDE_MEMORY]
    if knowledge.config.policy != "regroup":
        said += _decided_before(knowledge)
    if knowledge.catalogue is not None and not knowledge.catalogue.declared:
        said.append(
            f"The catalogue was not declared: its items were {_FROZEN}, and one stays there when whoever had it is "
            "erased."
        )
    if knowledge.config.rating_scale is None:
        said.append(_SCALE)
    return " ".join([*said, _SIGNATURE])


def policy_means(knowledge: Knowledge) -> str:
    """Say what the policy means for groups and filter, as far as there are such."""
    decided = _decided(knowledge)
    if knowledge.config.policy == "regroup" and decided:
        return f"{_listed(decided)} {_was(decided)} decided anew without the erased data.".capitalize()
    independent = ["A person's group follows from that person's own id and the seed alone."]
    said = [*(independent if knowledge.config.policy == "independent" else []), *_decided_before(knowledge)]
    return " ".join(said) or "There are no groups to train in turn and no filter, so nothing was decided about them."


def catalogue_origin(knowledge: Knowledge) -> str:
    """Say where the items come from."""
    if knowledge.catalogue is None:
        return "those that people have: what only the erased had is gone with them"
    return "declared" if knowledge.catalogue.declared else _FROZEN


def filter_state(knowledge: Knowledge) -> str:
    """Say what became of the filter."""
    if knowledge.kept_items is None:
        return "none"
    return "applied anew" if knowledge.config.policy == "regroup" else "frozen"


def about_list(scope: Scope, on_disk: bool) -> str:
    """Say what is kept on a do-not-learn list, why, and how to drop it."""
    kept = "A keyed digest of the person's id is" if scope == WHOLE else "A keyed digest of each interaction erased is"
    return f"{kept} {_LIST_ON_DISK if on_disk else _LIST_IN_MEMORY}"


def model_settings(config: Config) -> dict[str, Any]:
    """Return the settings of the model that is used; the seed is left out, since with it a guess could be tested."""
    without = {"seed", *(() if config.rows == "solved" else config.learner.settings.only_for_rows)}
    return {name: value for name, value in config.flat().items() if name not in without}


def _has_groups(config: Config) -> bool:
    return config.groups > 1


def _decided(knowledge: Knowledge) -> list[str]:
    groups = ["the groups", "their order"] if _has_groups(knowledge.config) else []
    return [*groups, *(["the filter"] if knowledge.kept_items is not None else [])]


def _decided_before(knowledge: Knowledge) -> list[str]:
    """Say what was decided when the person's data may have been there."""
    given = knowledge.config.grouping == "given" and _has_groups(knowledge.config)
    said = ["The groups and their order were given, and stay."] if given else []
    own_id = given or knowledge.config.policy == "independent"
    decided = [part for part in _decided(knowledge) if not (own_id and part != "the filter")]
    if decided:
        stay = "stays" if decided == ["the filter"] else "stay"
        was = _was(decided)
        said.append(
            f"{_listed(decided).capitalize()} {was} decided before the erasure, when the erased data may have been "
            f"there, and {stay} as {'it was' if was == 'was' else 'they were'}."
        )
    return said


def _was(decided: list[str]) -> str:
    return "was" if len(decided) == 1 else "were"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
