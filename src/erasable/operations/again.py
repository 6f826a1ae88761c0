"""Learn anew in place: from what is held, and new data if some is given, as one more version of the same workspace."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from erasable.chain.arrangement import joined_rows, refuse_after_filter
from erasable.chain.chain import made_elsewhere
from erasable.chain.dataset import Dataset
from erasable.chain.plan import carry_out, plan_change
from erasable.chain.settings import Config, in_preset
from erasable.data.interactions import Interactions
from erasable.errors import Refused, Said, WrongUse, option
from erasable.grouping.registry import check_grouping
from erasable.models.registry import refuse_without_torch
from erasable.operations.declared_items import also_declaring
from erasable.operations.do_not_learn import open_list_of, readmitting
from erasable.operations.learn import notices_of, read_further, refuse_unready
from erasable.operations.prepare import NO_INPUTS, Inputs, Read, prepare_again
from erasable.operations.recording import readmission_facts, remembering, version_facts
from erasable.operations.storage import Storage
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.do_not_learn import NONE_LISTED, ListedCount
from erasable.proof.log import add_record
from erasable.proof.search_file import read_search
from erasable.workspace.manifest import Stamp


@dataclass(frozen=True)
class LearnedAgain:
    """Sizes after learning anew, what of them is new, and how much was trained."""

    model: str
    users: int
    items: int
    interactions: int
    groups: int
    users_added: int
    interactions_added: int
    left_out: ListedCount
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    readmitted: int
    """How many people came back who were on that list."""
    notes: tuple[str, ...]
    stages_rerun: int
    stages_total: int
    seconds: float


def learn_again(
    storage: Storage,
    source: Any = None,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    settings: Mapping[str, Any] | None = None,
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
) -> LearnedAgain:
    """Learn anew from what is held, and from new data if some is given; key, log, certificates and queue stay.

    Groups are chosen again, and people who came later are in them. Settings stay, unless some, or a preset, are given
    to change; another model has its own, and its usual strategy. If anything fails nothing changes. What would get the
    same bytes is not trained again.
    """
    began = time.perf_counter()
    if source is None and inputs.readmit:
        raise WrongUse(
            "nobody comes back without data: give what they have, or leave out ", Said("readmit=", "--readmit")
        )
    with storage.writing() as session:
        refuse_unready(storage, session, rerun=True)
        state = session.state()
        state = state.untrained() if made_elsewhere(state) else state
        before = state.dataset
        open_list = open_list_of(session, inputs.listing, erasing=False)
        read = None
        if source is not None:
            read = read_further(source, inputs, before, session, open_list, work)
        if not before.users and (read is None or not len(read.interactions)):
            raise Refused("nobody is held, so there is nothing to learn from: give data of people who are not erased")
        chosen = _chosen(before.config, dict(settings or {}))
        after = prepare_again(before, _everything(before, read), chosen, inputs, work)
        planned = plan_change(state, after)
        session.refuse_if_full(session.size)
        with work.tasks_of(session) as executor, work.training("learning", planned.samples) as effort:
            new = carry_out(planned, state, after, session.checkpoints, effort, executor)
        with work.reporter.track("saving"):
            documents, stamp = session.documents(), Stamp.after(session.stamp.version)
            preferences = documents.preferences if read is None else remembering(documents.preferences, read.source)
            facts = {**version_facts(new, stamp), **readmission_facts(len(inputs.readmit))}
            log = add_record(documents.log, "learn again", facts)
            sought = read_search(documents.pending).made_again(planned.rerun)
            kept = open_list.remembered_by(preferences, session.path)
            documents = replace(documents, log=log, preferences=kept, pending=sought.encoded())
            with readmitting(session, open_list, None if read is None else read.readmitted):
                session.commit(new, also_declaring(documents, session.declared_items(), inputs.items, stamp), stamp)
    return LearnedAgain(
        model=after.config.model,
        users=after.users,
        items=len(after.items),
        interactions=after.interactions,
        groups=after.group_count,
        users_added=after.users - before.users,
        interactions_added=after.interactions - before.interactions,
        left_out=NONE_LISTED if read is None else read.suppressed,
        readmitted=len(inputs.readmit),
        notes=(*(() if read is None else (*read.source.notices, *read.notes)), *notices_of(after), *open_list.notes),
        stages_rerun=planned.stages_rerun,
        stages_total=planned.stages_total,
        seconds=time.perf_counter() - began,
    )


def _chosen(before: Config, given: dict[str, Any]) -> Config:
    """Return the settings to learn with: those before, with what is given changed."""
    given = {**in_preset(given.pop("preset", None), given.get("model", before.model)), **given}
    model = given.get("model", before.model)
    other = {} if model == before.model else _with_another_model(before, Config(model=model))
    chosen = before.changed(**{**other, **given}).of_this_revision()
    refuse_without_torch(chosen.learner)
    check_grouping(chosen.dividing)
    _refuse_other_weights(before, chosen)
    _refuse_weaker_filter(before, chosen)
    return chosen


def _with_another_model(before: Config, other: Config) -> dict[str, Any]:
    """Return what changes with the model: its usual strategy, unless another was chosen that it has too."""
    chosen = before.strategy != before.learner.strategies[0] and before.strategy in other.learner.strategies
    return {"strategy": before.strategy if chosen else other.strategy, "chosen_on": None}


def _refuse_other_weights(before: Config, chosen: Config) -> None:
    """Refuse other weights than those that the rows held were added up with."""
    if chosen.weights != before.weights:
        raise Refused(
            "the rows held were added up with other weights: leave out ",
            option("max_weight"),
            " and ",
            option("event_weights"),
            ", or learn from all data into a new folder",
        )


def _refuse_weaker_filter(before: Config, chosen: Config) -> None:
    """Refuse a filter below the one that chose the rows held: certificates would not name it any more."""
    if chosen.min_interactions < before.min_interactions:
        raise Refused(
            f"a filter of {before.min_interactions} chose the rows that are held: leave out ",
            option("min_interactions"),
            ", or learn from all data into a new folder",
        )


def _everything(before: Dataset, read: Read | None) -> Interactions:
    """Return all rows that are held and those that come: of one pair the later row counts, or weights add up."""
    held = Interactions.merge([*before.groups, before.held_out])
    if read is None or not len(read.interactions):
        return held.with_items(held.items.sorted()) if before.catalogue is None else held
    refuse_after_filter(before)
    return joined_rows([held, read.interactions], before.config.max_weight)
