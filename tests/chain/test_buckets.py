"""People in buckets: how many there are reaches no name, no count and no byte of a model."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.chain import Config, Dataset, MemoryStore, arrange, buckets, grown, link_names, train_chain
from erasable.chain.buckets import Bucket, Buckets, cuts, dealt
from erasable.chain.counts import Counts, Rules
from erasable.data import Ids, Interactions, RatingScale, split_holdout
from erasable.data.interactions import Subject
from erasable.data.slots import SLOTS, in_slots, slot_keys, slot_order, slots_of
from erasable.errors import UnknownUser
from erasable.grouping.points import ALONE
from erasable.models import Effort
from kit.choosing import examples
from kit.tables import as_rows, random_table, table

SCALE = RatingScale(1, 5)
PEOPLE = [3, 10, 50_000]
CHAIN = Config(model="nmf", groups=3, grouping="random", order="number", epochs=2, holdout=0.3)
ANCHORED = CHAIN.changed(rows="solved", anchors=0.5)
CONFIGS = {"chain": CHAIN, "anchored": ANCHORED, "retrain": Config(model="ease", holdout=0.0)}


@pytest.fixture
def in_buckets_of(monkeypatch):
    """Return a function that says about how many people lie in a bucket from now on."""
    return lambda people: monkeypatch.setattr(buckets, "PEOPLE_IN_A_BUCKET", people)


def made(config=CHAIN, users=40, items=12, seed=3) -> Dataset:
    rows = random_table(seed, users=users, items=items, ratings=True)
    return arrange(rows, Dataset.of_nobody(config, None, SCALE), ALONE)


def assert_same_counts(one: Counts, other: Counts) -> None:
    for part in fields(Counts):
        mine, others = getattr(one, part.name), getattr(other, part.name)
        assert np.shape(mine) == np.shape(others), part.name
        assert np.array_equal(mine, others), part.name


def assert_counted_well(dataset: Dataset) -> None:
    """Compare with counting from scratch, and with other buckets over the same people."""
    assert_same_counts(dataset.counts, dataset.recounted().counts)
    again = dataset.with_groups()
    assert_same_counts(dataset.counts, again.counts)
    assert link_names(dataset) == link_names(again)
    assert dataset.data_name == again.data_name


def assert_well_kept(dataset: Dataset) -> None:
    """Everyone is in one bucket, in the order of slots, and is found there."""
    held, parts = dataset.buckets, [*dataset.buckets]
    assert held.starts[0] == 0
    assert [*held.starts] == sorted({*held.starts})
    for bucket, first, end in zip(parts, held.starts, [*held.starts[1:], SLOTS], strict=True):
        assert bucket.slots.tolist() == slots_of(bucket.users, held.seed).tolist()
        assert all(first <= slot < end for slot in bucket.slots.tolist())
        keys = [(slot, user.encode()) for slot, user in zip(bucket.slots.tolist(), bucket.users, strict=True)]
        assert keys == sorted(keys)
        assert {*bucket.held_out.users} <= {*bucket.users}
        assert bucket.training.items is bucket.held_out.items or bucket.training.items == bucket.held_out.items
    everyone = [user for bucket in parts for user in bucket.users]
    assert len(everyone) == len({*everyone}) == dataset.users
    for user in everyone:
        place = dataset.find(user)
        assert dataset.user_at(place) == user
        assert user in dataset.groups[place.group].users


class TestSlots:
    @given(st.lists(st.text(min_size=1), unique=True, max_size=20), st.integers(0, 2**31))
    def test_they_depend_on_nobody_else(self, users, seed):
        together = slots_of(Ids.of(users), seed).tolist()
        assert together == [int(slots_of(Ids.of([user]), seed)[0]) for user in users]
        assert all(0 <= slot < SLOTS for slot in together)
        assert [key >> 52 for key in slot_keys(Ids.of(users), seed).tolist()] == together

    def test_they_share_people_out_evenly_and_anew_for_each_seed(self):
        users = Ids.of([f"user {number}" for number in range(20 * SLOTS)])
        counts = np.bincount(slots_of(users, 0), minlength=SLOTS)
        assert counts.min() > 0
        assert abs(counts.std() / np.sqrt(20) - 1) < 0.1
        assert np.mean(slots_of(users, 0) == slots_of(users, 1)) < 0.001

    @given(st.lists(st.text(min_size=1), unique=True, max_size=30), st.integers(0, 3))
    def test_the_order_is_that_of_slots_and_of_bytes_within_one(self, users, seed):
        ids = Ids.of(users)
        slots = slots_of(ids, seed).tolist()
        expected = sorted(range(len(users)), key=lambda place: (slots[place], users[place].encode()))
        assert slot_order(ids, seed).tolist() == expected


class TestInteractionsInSlots:
    @given(st.integers(0, 100), st.integers(0, 3))
    def test_they_hold_the_same_rows_and_go_back(self, number, seed):
        rows = random_table(number, ratings=True)
        slotted = in_slots(rows, seed)
        assert slotted.by_slot
        assert in_slots(slotted, seed) is slotted
        assert slotted.users.texts() == [rows.users[place] for place in slot_order(rows.users, seed)]
        assert as_rows(slotted) == as_rows(rows)
        assert slotted.by_id().digest() == rows.digest()
        assert not slotted.by_id().by_slot
        assert rows.by_id() is rows

    def test_joined_they_stand_one_after_another(self):
        rows = random_table(1, ratings=True)
        timed = replace(rows, time=np.arange(len(rows), dtype=np.float64))
        slotted = in_slots(timed, 0)
        parts = [slotted.at(np.arange(low, high)) for low, high in pairwise([0, 1, 5, 5, len(rows.users)])]
        joined = Interactions.joined(parts)
        assert (joined.users, joined.digest(), joined.by_slot) == (slotted.users, slotted.digest(), True)
        assert joined.time.tolist() == slotted.time.tolist()
        assert joined.by_id().time.tolist() == timed.time.tolist()
        assert Interactions.joined([slotted]) is slotted

    def test_where_a_part_has_no_times_they_are_unknown(self):
        one, two = table({"x": ["a"]}, "ab"), table({"y": ["b"]}, "ab")
        joined = Interactions.joined([replace(one, time=np.array([7.0])), two])
        assert joined.time[0] == 7
        assert np.isnan(joined.time[1])

    def test_users_at_some_positions_come_in_that_order(self):
        slotted = in_slots(random_table(2), 0)
        chosen = slotted.at(np.array([5, 2, 7]))
        assert chosen.users.texts() == [slotted.users[place] for place in (5, 2, 7)]
        assert as_rows(chosen) == {row for row in as_rows(slotted) if row[0] in chosen.users}


@pytest.mark.parametrize("people", [1, *PEOPLE])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_everyone_is_in_exactly_one_bucket_whatever_their_number(in_buckets_of, people, config):
    whole = made(config)
    in_buckets_of(people)
    dataset = made(config)
    assert len(dataset.buckets) == pytest.approx(max(1, 40 / people), rel=0.4)
    assert_well_kept(dataset)
    assert [group.digest() for group in dataset.groups] == [group.digest() for group in whole.groups]
    assert dataset.held_out.digest() == whole.held_out.digest()
    for user in (*dataset.groups[0].users.texts()[:3], "u0001"):
        assert as_rows(dataset.data_of([user])) == as_rows(whole.data_of([user]))
    with pytest.raises(UnknownUser):
        dataset.find("nobody")
    assert dataset.buckets.find("nobody") is None


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_counts_digests_and_names_do_not_depend_on_the_number_of_buckets(in_buckets_of, config):
    found = []
    for people in PEOPLE:
        in_buckets_of(people)
        found.append(made(config))
    assert [len(dataset.buckets) > 1 for dataset in found] == [True, True, False]
    for dataset in found:
        assert_same_counts(dataset.counts, found[0].counts)
        assert dataset.data_name == found[0].data_name
        assert link_names(dataset) == link_names(found[0])
        assert [dataset.learners_name(stage) for stage in range(dataset.stages)] == [
            found[0].learners_name(stage) for stage in range(found[0].stages)
        ]


def test_the_digest_of_a_slot_depends_on_nobody_outside_it(in_buckets_of):
    """Also where nothing is held out of it, and of others in the bucket there is."""
    dataset = made()
    assert "u0001" not in dataset.held_out.users
    in_buckets_of(1)
    alone = dataset.with_groups()
    assert not len(alone.buckets[alone.find("u0001").bucket].held_out)
    assert_same_counts(alone.counts, dataset.counts)
    assert alone.data_name == dataset.data_name


def test_the_counts_are_those_that_one_counts_by_hand(in_buckets_of):
    in_buckets_of(5)
    dataset = made(ANCHORED)
    counts, everyone = dataset.counts, Interactions.merge(dataset.groups)
    assert counts.trained.tolist() == np.bincount(everyone.item_index, minlength=len(dataset.items)).tolist()
    both = np.concatenate([everyone.item_index, dataset.held_out.item_index])
    assert counts.rows.tolist() == np.bincount(both, minlength=len(dataset.items)).tolist()
    for stage in range(3):
        learners = dataset.learners_over_all(stage)
        assert {*learners.users} < {*dataset.groups[stage].users}
        assert counts.learned[stage].tolist() == np.bincount(learners.item_index, minlength=len(dataset.items)).tolist()
        size = counts.size_of_stage(stage, len(dataset.known(stage)))
        assert (size.users, len(size)) == (len(learners.users), len(learners))
    assert [(size.users, len(size)) for size in dataset.group_sizes()] == [
        (len(group.users), len(group)) for group in dataset.groups
    ]
    assert (counts.held_out, counts.users) == (len(dataset.held_out), 40)
    assert counts.people.tolist() == np.unique(slots_of(everyone.users, 0), return_counts=True)[1].tolist()


CHANGES = {
    "a rating": lambda rows: replace(rows, rating=rows.rating + (np.arange(len(rows)) == 3)),
    "a pair": lambda rows: rows.without(pairs=[("u0000", "i001")]),
    "a person": lambda rows: rows.without(users=["u0001"]),
    "an id": lambda rows: replace(rows, users=Ids.of([*rows.users.texts()[:-1], rows.users[-1] + "x"])),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_is_another_name(change):
    rows = random_table(5, ratings=True).timeless
    one, other = (
        Dataset.of_groups(CONFIGS["retrain"], None, SCALE, [part], part.select(np.zeros(len(part), bool)))
        for part in (rows, change(rows))
    )
    assert one.data_name != other.data_name
    assert link_names(one) != link_names(other)


def test_groups_and_the_holdout_are_in_the_name_of_all_data_and_times_are_not():
    dataset = made()
    first, second, third = dataset.groups
    assert dataset.with_groups(groups=(second, first, third)).data_name != dataset.data_name
    fewer = dataset.held_out.without(users=dataset.held_out.users.texts()[:1])
    assert dataset.with_groups(held_out=fewer).data_name != dataset.data_name
    assert link_names(dataset.with_groups(held_out=fewer)) == link_names(dataset)
    timed = [replace(group, time=np.arange(len(group), dtype=np.float64)) for group in dataset.groups]
    assert dataset.with_groups(groups=timed).data_name == dataset.data_name


class TestChanges:
    @pytest.mark.parametrize("people", PEOPLE)
    @pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
    def test_counts_without_some_are_those_of_counting_again(self, in_buckets_of, people, config):
        in_buckets_of(people)
        dataset = made(config)
        everyone = [user for group in dataset.groups for user in group.users]
        for users, pairs in (
            (everyone[:1], []),
            (everyone[::3], []),
            ([], [("u0000", "i003")]),
            (["u0000"], []),  # who alone has the last item
            (everyone[1::2], [(everyone[0], item) for item in sorted(dataset.items_of(everyone[0]))[:2]]),
            (dataset.groups[-1].users.texts() if len(dataset.groups) > 1 else everyone[:2], []),
        ):
            after = dataset.without(users, pairs)
            assert_counted_well(after)
            assert_well_kept(after)
            assert not {*users} & {user for bucket in after.buckets for user in bucket.users}
            assert after.without([after.groups[0].users[0]], []).users == after.users - 1
        assert "i011" not in dataset.without(["u0000"], []).items
        assert_counted_well(dataset)

    @settings(max_examples=examples(quick=15, full=100), deadline=None)
    @given(data=st.data())
    def test_any_changes_one_after_another_give_what_dealing_out_the_outcome_gives(self, data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(buckets, "PEOPLE_IN_A_BUCKET", data.draw(st.sampled_from([1, 3, 10, 50_000])))
            dataset = made(data.draw(st.sampled_from([CHAIN, ANCHORED])), users=12)
            for number in range(data.draw(st.integers(1, 4))):
                known = sorted(user for bucket in dataset.buckets for user in bucket.users)
                if len(known) > 2 and data.draw(st.booleans()):
                    gone = data.draw(st.sets(st.sampled_from(known), max_size=len(known) - 2))
                    dataset = dataset.without(gone, [])
                else:
                    users = st.sampled_from([*known, "new", f"newer {number}"])
                    items = st.sampled_from([*dataset.items.texts(), "00 new", "zz new"])
                    drawn = data.draw(st.dictionaries(users, st.sets(items, min_size=1), min_size=1, max_size=5))
                    dataset = grown(
                        dataset, table({user: dict.fromkeys(has, 3.0) for user, has in drawn.items()}), ALONE
                    )
                assert_counted_well(dataset)
                assert_well_kept(dataset)
                assert dataset.items.is_sorted

    def test_items_come_and_go(self, in_buckets_of):
        in_buckets_of(5)
        dataset = made()
        after = grown(dataset, table({"u0007": {"00 first": 2.0, "zz last": 3.0}}), ALONE)
        assert (after.items[0], after.items[-1]) == ("00 first", "zz last")
        assert_counted_well(after)
        gone = after.without(["u0007", "u0000"], [])
        assert {*dataset.items} - {*gone.items} == {"i011"}
        assert {*gone.items} <= {*dataset.items}
        assert_counted_well(gone)
        assert gone.data_name == dataset.without(["u0007", "u0000"], []).data_name

    @pytest.mark.parametrize("config", [CHAIN, ANCHORED], ids=["chain", "anchored"])
    def test_groups_that_were_added_and_emptied_leave_no_trace(self, in_buckets_of, config):
        in_buckets_of(5)
        dataset = made(config)
        after = grown(dataset, table({"new": {"i001": 2.0, "i002": 1.0}, "newer": {"i000": 4.0}}), ALONE)
        assert after.group_count == 4
        assert_counted_well(after)
        fewer = after.without(["new"], [])
        assert fewer.group_count == 4
        assert_counted_well(fewer)
        gone = fewer.without(["newer"], [])
        assert gone.group_count == 3
        assert_counted_well(gone)
        assert_same_counts(gone.counts, dataset.counts)
        assert link_names(gone) == link_names(dataset)

    def test_a_group_of_the_first_stays_though_nobody_is_left_in_it(self, in_buckets_of):
        in_buckets_of(5)
        dataset = made()
        after = dataset.without(dataset.groups[2].users.texts(), [])
        assert [len(group.users) > 0 for group in after.groups] == [True, True, False]
        assert_counted_well(after)

    def test_only_buckets_of_those_who_changed_are_replaced(self, in_buckets_of):
        in_buckets_of(5)
        dataset = made()
        _ = dataset.counts
        touched = dataset.find("u0000").bucket  # with whom an item goes, so that all rows are numbered anew
        after = dataset.without(["u0000"], [])
        assert after.buckets.new_since(dataset.buckets) == [touched]
        assert dataset.buckets.new_since(after.buckets) == [touched]
        for number, part in enumerate(dataset.buckets.parts):
            assert (after.buckets.parts[number] is part) == (number != touched)
        for bucket in after.buckets:
            assert bucket.training.items == after.items

    def test_counting_a_change_hashes_only_what_it_touched(self, in_buckets_of, hashed):
        in_buckets_of(5)
        dataset = made()
        _ = dataset.counts
        del hashed[:]
        after = dataset.without(["u0000"], [])
        (bucket,) = [after.buckets[number] for number in after.buckets.new_since(dataset.buckets)]
        _ = after.counts
        # With another list of items, its rows have other numbers now.
        assert [people for people, _ in hashed] == [bucket.over(dataset.items).training.digest()]

    def test_a_bucket_that_grows_too_large_is_divided_between_slots(self, in_buckets_of):
        in_buckets_of(10)
        dataset = made(users=20)
        before = dataset.buckets
        assert len(before) == 2
        coming = table({f"new {number}": {"i000": 3.0} for number in range(40)})
        after = grown(dataset, coming, ALONE)
        assert len(after.buckets) == 8
        assert max(len(bucket.users) for bucket in after.buckets) <= 15
        assert_well_kept(after)
        assert_counted_well(after)

    def test_no_slot_is_divided(self, in_buckets_of, monkeypatch):
        monkeypatch.setattr(buckets, "slots_of", lambda users, seed: np.full(len(users), 7, np.int16))
        in_buckets_of(2)
        rows = random_table(1, users=9)
        (whole,) = (
            Bucket(
                replace(rows, by_slot=True),
                rows.select(np.zeros(len(rows), bool)),
                np.zeros(9, np.int16),
                np.full(9, 7, np.int16),
            )
            .divided(7, 8)
            .values()
        )
        assert len(whole.users) == 9

    @pytest.mark.parametrize("which", [0, 2, -1])
    def test_a_bucket_that_is_emptied_stays_where_it_is(self, in_buckets_of, which):
        in_buckets_of(5)
        dataset = made()
        gone = dataset.buckets[which].users.texts()
        after = dataset.without(gone, [])
        assert after.buckets.starts == dataset.buckets.starts
        assert len(after.buckets[which].users) == 0
        assert_well_kept(after)
        assert_counted_well(after)
        again = grown(after, dataset.data_of(gone[:2]).with_items(dataset.items), ALONE)
        assert again.users == after.users + 2
        assert_well_kept(again)
        assert_counted_well(again)

    def test_everyone_can_go(self, in_buckets_of):
        in_buckets_of(5)
        dataset = made()
        nobody = dataset.without([user for group in dataset.groups for user in group.users], [])
        assert (nobody.users, nobody.interactions, len(nobody.items)) == (0, 0, 0)
        assert [len(group) for group in nobody.groups] == [0, 0, 0]
        assert_same_counts(nobody.counts, nobody.recounted().counts)

    def test_another_seed_deals_everyone_out_again(self, in_buckets_of):
        in_buckets_of(5)
        dataset = made()
        other = replace(dataset, config=dataset.config.changed(seed=7))
        assert other.buckets.seed == 7
        assert_well_kept(other)
        assert_same_counts(other.counts, other.recounted().counts)
        assert [group.digest() for group in other.groups] == [group.digest() for group in dataset.groups]
        assert other.held_out.digest() == dataset.held_out.digest()
        places = [(dataset.find(user).bucket, other.find(user).bucket) for user in dataset.groups[0].users]
        assert any(before != after for before, after in places)
        assert not np.array_equal(other.counts.slots, dataset.counts.slots)


class TestCuts:
    @given(st.integers(0, 10**9))
    @settings(max_examples=examples(quick=20, full=100), deadline=None)
    def test_they_divide_the_slots_alike_whoever_lies_in_them(self, people):
        """How many people there are is all that counts, and hardly that: where a bucket begins tells of nobody."""
        found = cuts(people)
        assert (found[0], found[-1]) == (0, SLOTS)
        (size,) = {high - low for low, high in pairwise(found)}
        assert size.bit_count() == 1
        each = people / (len(found) - 1)
        assert each <= 1.5 * buckets.PEOPLE_IN_A_BUCKET or size == 1
        assert each >= buckets.PEOPLE_IN_A_BUCKET / 1.5 or len(found) == 2

    def test_a_run_of_slots_is_divided_in_the_same_way(self):
        assert cuts(2 * buckets.PEOPLE_IN_A_BUCKET, 1024, 2048) == [1024, 1536, 2048]
        assert cuts(10**9, 1024, 1026) == [1024, 1025, 1026]


class TestABucket:
    @pytest.fixture
    def bucket(self) -> Bucket:
        rows = random_table(4, users=30, ratings=True)
        training, held_out = split_holdout(rows, 0.3, 0)
        return Bucket.of(training, held_out, np.arange(30) % 4, 0)

    def test_whoever_has_no_row_to_learn_from_is_left_out(self):
        training, held_out = table({"x": ["a"]}, "ab"), table({"x": ["b"], "y": ["a"]}, "ab")
        found = Bucket.of(training, held_out, np.array([5]), 0)
        assert (found.users.texts(), found.held_out.users.texts(), found.groups.tolist()) == (["x"], ["x"], [5])

    def test_everyone_keeps_their_group_and_holdout(self, bucket):
        rows = random_table(4, users=30, ratings=True)
        training, held_out = split_holdout(rows, 0.3, 0)
        for row, user in enumerate(bucket.users):
            number = training.users.texts().index(user)
            assert bucket.groups[row] == number % 4
            assert bucket.find(user, int(bucket.slots[row])) == row
            own = held_out.of_users([user])
            assert bucket.held_out_of(row).tolist() == own.item_index.tolist()
            assert bucket.history(np.array([row])).digest() == rows.of_users([user]).digest()
            assert bucket.find(user + "x", int(bucket.slots[row])) == -1

    def test_without_some_people_it_is_that_of_the_others(self, bucket):
        rows = np.array([0, 3, 29])
        found = bucket.without(rows)
        gone = bucket.users.take(rows).texts()
        stays = [row for row in range(30) if row not in rows.tolist()]
        assert found.training.digest() == bucket.training.without(users=gone).digest()
        assert found.held_out.digest() == bucket.held_out.without(users=gone).digest()
        assert (found.groups.tolist(), found.slots.tolist()) == (
            bucket.groups[stays].tolist(),
            bucket.slots[stays].tolist(),
        )

    def test_over_other_items_it_holds_the_same(self, bucket):
        items = Ids.of(["new", *bucket.training.items.texts()[::-1]])
        found = bucket.over(items)
        assert as_rows(found.training) == as_rows(bucket.training)
        assert as_rows(found.held_out) == as_rows(bucket.held_out)
        assert (found.training.by_slot, found.held_out.by_slot) == (True, True)
        assert bucket.over(bucket.training.items) is bucket
        rules = Rules(0, 0.5, 2)
        one, other = Counts.of(bucket, rules), Counts.of(found, rules)
        # Rows of one person stand in the order of the items' numbers: only a list in the same order has the same hash.
        place = items.positions_of(bucket.training.items.array)
        assert_same_counts(replace(one.over(place, len(items)), whole=other.whole, of_stages=other.of_stages), other)
        longer = Ids.of(["00 new", *bucket.training.items, "zz new"])
        wider = Counts.of(bucket.over(longer), rules)
        assert_same_counts(one.over(longer.positions_of(bucket.training.items.array), len(longer)), wider)


def test_a_list_of_buckets_reads_each_when_it_is_used(in_buckets_of):
    in_buckets_of(5)
    dataset = made()
    read = []

    class Stored:
        def __init__(self, number, bucket):
            self.number, self.bucket = number, bucket

        def read(self, items):
            read.append(self.number)
            return self.bucket.over(items)

        def kept_open(self):
            return self

    parts = [Stored(number, bucket) for number, bucket in enumerate(dataset.buckets)]
    held = Buckets(parts, dataset.buckets.starts, dataset.items, 0)
    assert len(held) == 8
    assert read == []
    held[2], held[2], held[-1]
    assert read == [2, 7]
    assert sorted(held._read) == [2, 7]
    assert len([*held]) == 8
    assert sorted(read) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [bucket.users for bucket in held[:3]] == [bucket.users for bucket in dataset.buckets[:3]]
    assert held.kept_open().parts[2] is held[2]
    assert held.over(dataset.items).parts == held.parts
    for slot in (0, *held.starts, SLOTS - 1):
        number = held.number_of(slot)
        assert held.starts[number] <= slot < [*held.starts, SLOTS][number + 1]


def test_dealing_out_gives_the_same_whatever_the_order(in_buckets_of):
    in_buckets_of(5)
    rows = random_table(4, users=30, ratings=True)
    training, held_out = split_holdout(rows, 0.3, 0)
    first = dealt(training, held_out, np.arange(30) % 4, 0)
    slotted = in_slots(training, 1)
    groups = np.array([training.users.texts().index(user) % 4 for user in slotted.users])
    second = dealt(slotted, in_slots(held_out, 2), groups, 0)
    assert len(first) == len(second) == 8
    for one, other in zip(first, second, strict=True):
        assert (one.training.digest(), one.held_out.digest()) == (other.training.digest(), other.held_out.digest())
        assert (one.groups.tolist(), one.slots.tolist()) == (other.groups.tolist(), other.slots.tolist())


MODELS = {
    "als": Config(model="als", factors=4, epochs=3, holdout=0.2),
    "nmf with solved rows": ANCHORED,
    "ease": Config(model="ease", holdout=0.2),
    "nmf": CHAIN,
}


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_every_byte_of_a_model_is_the_same_with_one_bucket_and_with_many(in_buckets_of, chains, config):
    found = []
    for people in (50_000, 4):
        in_buckets_of(people)
        store = MemoryStore()
        learned = chains.LearnedChain(train_chain(made(config, users=24), store, Effort(2)), store)
        after = chains.forget(learned, [Subject("u0000"), Subject("u0005")])
        found.append([(one.names, one.contents(), one.rows()) for one in (learned, after)])
    assert len(made(config, users=24).buckets) == 8
    assert found[0] == found[1]


def test_arrow_text_of_any_width_is_hashed_alike():
    rows = random_table(1)
    wide = replace(rows, users=Ids(rows.users.array.slice(0)), items=Ids(pa.concat_arrays([rows.items.array])))
    one, other = (
        Counts.of(Bucket.of(part, part.select(np.zeros(len(part), bool)), np.zeros(12), 0), Rules(0, 1.0, 1))
        for part in (rows, wide)
    )
    assert_same_counts(one, other)
