"""Tasks: they hold names and no data, and give the same bytes whoever carries them out, when and where."""

import json
import os
import pickle
from dataclasses import asdict, fields, is_dataclass, replace
from itertools import permutations

import pytest

from erasable.chain import (
    ORIGIN,
    Config,
    Earlier,
    InMemory,
    MemoryStore,
    scheduled,
    stages_of,
    train_chain,
)
from erasable.chain.chain import carry_out_schedule
from erasable.data import RatingScale
from erasable.errors import Refused
from erasable.models import Effort, find_model
from erasable.operations.work import Processes
from erasable.requests import Request
from erasable.workspace import Workspace
from erasable.workspace.checkpoints import encode_checkpoint
from kit.choosing import some
from kit.other_process import MadeElsewhere

SCALE = RatingScale(1, 5)
WAYS = {
    "nmf": {"model": "nmf", "groups": 3, "epochs": 3, "batch": 16},
    "sisa": {"model": "dmf", "strategy": "sisa", "groups": 3, "epochs": 3, "batch": 16},
    "solved": {"model": "nmf", "groups": 3, "epochs": 3, "rows": "solved", "anchors": 0.6},
    "als": {"model": "als", "epochs": 2, "factors": 8},
    "ease": {"model": "ease"},
    "regroup": {"model": "nmf", "groups": 2, "epochs": 2, "policy": "regroup", "grouping": "random"},
}


@pytest.fixture(params=WAYS)
def learned(request, tables, chains):
    rows = tables.random_table(3, users=18, items=9, ratings=True)
    return chains.learn(rows, Config(**WAYS[request.param]), scale=SCALE)


@pytest.fixture
def forgetting(learned, chains):
    """The tasks of forgetting someone whom a stage has learned from."""
    user = learned.state.dataset.learners(0).users[0]
    after, earlier = chains.after(learned.state, [Request(user)]), Earlier.of(learned.state)
    return after, earlier, scheduled(after, earlier)


def plain(value) -> bool:
    """Whether a value is made of texts and numbers alone."""
    if is_dataclass(value):
        return all(plain(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, dict | list | tuple):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return all(map(plain, parts))
    return value is None or type(value) in (str, int, float, bool)


class TestATask:
    def test_holds_names_and_no_data(self, forgetting, learned):
        after, _, schedule = forgetting
        assert schedule.tasks
        assert plain(schedule)
        users = {user for group in learned.state.dataset.groups for user in group.users}
        items = set(after.items)
        written = json.dumps(asdict(schedule))
        assert not any(json.dumps(one) in written for one in users | items)

    def test_is_the_same_after_it_was_sent(self, forgetting):
        for task in forgetting[2].tasks:
            sent = pickle.loads(pickle.dumps(task))
            assert (sent, sent.name) == (task, task.name)

    def test_is_named_by_what_decides_its_bytes_and_by_nothing_else(self, forgetting):
        task = forgetting[2].tasks[0]
        for other in (replace(task, samples=1, visits=1), replace(task, shortcut=None), replace(task, beside=("x",))):
            assert other.name == task.name
        rows = replace(task.rows, rows="other"), replace(task.rows, items="other")
        others = [replace(task, rows=one) for one in rows]
        others += [replace(task, parent="other"), replace(task, seed=7), replace(task, scale=(1, 7))]
        others += [replace(task, solves_rows=not task.solves_rows), replace(task, position=7)]
        others += [replace(task, settings={**task.settings, "epochs": 99})]
        assert len({one.name for one in (task, *others)}) == 1 + len(others)

    def test_has_all_that_makes_its_model(self, forgetting, learned):
        task, config = forgetting[2].tasks[0], learned.state.dataset.config
        model = find_model(task.settings["model"])(**task.settings["settings"])
        left_out = {"epochs", *config.learner.settings.only_for_rows}
        assert model.settings.model_dump(exclude=left_out) == config.learner.settings.model_dump(exclude=left_out)

    def test_gives_the_same_bytes_twice_and_keeps_nothing(self, forgetting, learned):
        after, earlier, schedule = forgetting
        inputs = InMemory.of(schedule, after, earlier, learned.store)
        task = schedule.tasks[0]
        one, other = (task.run(inputs, Effort(threads))[0] for threads in (1, 2))
        assert encode_checkpoint(one) == encode_checkpoint(other)
        assert one.fingerprint == task.name
        assert task.name not in learned.store


def test_every_order_that_respects_parents_gives_the_same_bytes(forgetting, learned, chains):
    after, earlier, schedule = forgetting
    expected = chains.LearnedChain(carry_out_schedule(schedule, after, learned.store, Effort(), earlier), learned.store)
    tried = 0
    for order in permutations(schedule.tasks):
        made = {ORIGIN, *(link.fingerprint for link in earlier.chain)}
        if any(task.parent not in made or made.add(task.name) for task in order):
            continue
        store = learned.store.copy()
        store.keep_only(link.fingerprint for link in earlier.chain)
        inputs = InMemory.of(schedule, after, earlier, store)
        for task in order:
            store.put(task.run(inputs, Effort())[0])
        assert chains.LearnedChain(expected.state, store).contents() == expected.contents()
        tried += 1
    assert tried >= 1


def test_a_shortcut_gives_the_bytes_of_training_from_the_start(tables, chains):
    learned = chains.learn(tables.random_table(3, users=18, items=9, ratings=True), Config(model="ease"), scale=SCALE)
    after, earlier = chains.after(learned.state, [Request("u0003")]), Earlier.of(learned.state)
    schedule = scheduled(after, earlier)
    (task,) = schedule.tasks
    assert task.shortcut is not None
    inputs = InMemory.of(schedule, after, earlier, learned.store)
    short, whole = task.run(inputs, Effort())[0], replace(task, shortcut=None).run(inputs, Effort())[0]
    assert encode_checkpoint(short) == encode_checkpoint(whole)


def test_a_schedule_is_carried_out_on_the_rows_that_it_names_and_on_no_others(tables, chains):
    config = Config(model="nmf", groups=2, epochs=2)
    known = chains.dataset(tables.random_table(3, users=12, items=9), config, None, SCALE)
    with pytest.raises(Refused, match="the data changed since the plan was made: plan again"):
        carry_out_schedule(scheduled(known), known.without(["u0001"], []), MemoryStore(), Effort())


def test_rows_are_hashed_once_for_a_schedule_and_what_is_made_of_it(tables, chains, hashed):
    config = Config(model="nmf", groups=3, epochs=3)
    known = chains.dataset(tables.random_table(3, users=18, items=9), config, None, SCALE)
    schedule = scheduled(known)
    carry_out_schedule(schedule, known, MemoryStore(), Effort())
    assert len(hashed) == 1  # there is one bucket


@pytest.mark.parametrize("way", some(["nmf", "sisa", "ease"], 1))
def test_another_process_makes_the_same_bytes_from_a_task_and_the_workspace(way, tables, chains, tmp_path):
    rows = tables.random_table(3, users=18, items=9, ratings=True)
    here, there = [], []
    with Workspace.creating(tmp_path / "shop") as workspace:
        known = chains.dataset(rows, Config(**WAYS[way]), None, SCALE)
        state = train_chain(known, workspace.checkpoints, Effort(1, here.append))
        workspace.commit(state)
    with Workspace.reading(tmp_path / "shop") as workspace:
        kept = {
            link.fingerprint: encode_checkpoint(workspace.checkpoints.get(link.fingerprint)) for link in state.chain
        }
    elsewhere = Processes(2, lambda running: None)
    made = elsewhere.map(MadeElsewhere(tmp_path / "shop"), stages_of(known), Effort(1, there.append))
    made = {task.name: outcome for task, outcome in made}
    assert {name: content for name, (_, content) in made.items()} == kept
    assert os.getpid() not in {pid for pid, _ in made.values()}
    assert sum(there) == sum(here) > 0


@pytest.mark.full
@pytest.mark.parametrize("way", some(["sisa", "nmf", "ease"], 1))
def test_a_chain_that_other_processes_make_is_kept_here(way, tables, chains):
    known = chains.dataset(tables.random_table(3, users=18, items=9), Config(**WAYS[way]), None, SCALE)
    here, there = MemoryStore(), MemoryStore()
    alone = train_chain(known, here, Effort())
    state = carry_out_schedule(scheduled(known), known, there, Effort(), executor=Processes(2, lambda running: None))
    contents = [
        {link.fingerprint: encode_checkpoint(store.get(link.fingerprint)) for link in made.chain}
        for made, store in ((alone, here), (state, there))
    ]
    assert contents[0] == contents[1] != {}


class Sent:
    """Carries out here what was sent as if to another process, and keeps what went along for each task."""

    def __init__(self):
        self.bytes = {}

    def map(self, function, tasks, effort):
        for task in tasks:
            sent = pickle.dumps((function, task))
            self.bytes[str(task)] = sent
            there, order = pickle.loads(sent)
            yield task, there(order, effort)


@pytest.mark.parametrize("way", some(["nmf", "sisa", "solved", "ease"], 2))
def test_what_is_sent_with_a_task_holds_nobody_whom_it_does_not_learn_from(way, tables, chains):
    known = chains.dataset(tables.random_table(3, users=30, items=9), Config(**WAYS[way]), None, SCALE)
    store, sent = MemoryStore(), Sent()
    state = carry_out_schedule(scheduled(known), known, store, Effort(), executor=sent)
    assert [link.fingerprint for link in state.chain] == [task.name for task in stages_of(known)]
    assert len(sent.bytes) == known.stages
    everyone = {user for group in known.groups for user in group.users}
    for position in range(known.stages):
        learned = set(known.learners(position).users)
        along = sent.bytes[f"stage {position + 1}"]
        assert {user for user in everyone if user.encode() in along} == learned


@pytest.mark.full
def test_what_is_sent_does_not_grow_with_other_groups(tables, chains):
    config = Config(model="nmf", groups=3, epochs=3, grouping="independent")
    rows = tables.random_table(3, users=30, items=9)
    few = chains.dataset(rows, config, None, SCALE)
    more = chains.dataset(tables.random_table(3, users=300, items=9), config, None, SCALE)
    sizes = []
    for known in (few, few.with_groups(groups=(few.groups[0], *more.groups[1:]))):
        sent = Sent()
        carry_out_schedule(scheduled(known), known, MemoryStore(), Effort(), executor=sent)
        sizes.append({stage: len(content) for stage, content in sent.bytes.items()})
    assert sizes[0]["stage 1"] == sizes[1]["stage 1"]
    assert sizes[0]["stage 2"] < sizes[1]["stage 2"]


def test_forgetting_with_a_short_way_sends_both_rows_and_the_checkpoint(tables, chains):
    learned = chains.learn(tables.random_table(3, users=18, items=9, ratings=True), Config(model="ease"), scale=SCALE)
    after, earlier = chains.after(learned.state, [Request("u0003")]), Earlier.of(learned.state)
    schedule = scheduled(after, earlier)
    assert schedule.tasks[0].shortcut is not None
    here, there = learned.store.copy(), learned.store.copy()
    one = carry_out_schedule(schedule, after, here, Effort(), earlier)
    other = carry_out_schedule(schedule, after, there, Effort(), earlier, Sent())
    name = one.chain[0].fingerprint
    assert other.chain[0].fingerprint == name
    assert encode_checkpoint(here.get(name)) == encode_checkpoint(there.get(name))
