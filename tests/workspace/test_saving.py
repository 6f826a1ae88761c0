from dataclasses import replace

import pyarrow as pa
import pytest

from erasable.chain import State, grown
from erasable.data import Catalogue, Interactions, RatingScale
from erasable.errors import WorkspaceError, WrongUse
from erasable.grouping import Cohesion
from erasable.grouping.points import ALONE
from erasable.workspace import Workspace


def changed(state, **what):
    return State(replace(state.dataset, **what), state.chain)


def reloaded(path):
    with Workspace.reading(path) as workspace:
        state = workspace.state()
        list(state.dataset.groups)
        return state


def test_the_items_that_a_filter_kept_come_back(versions, learned):
    kept = frozenset(versions.learned.dataset.items.texts()[3:])
    with Workspace.writing(learned) as workspace:
        workspace.commit(changed(workspace.state(), kept_items=kept))
    assert reloaded(learned).dataset.kept_items == kept


def test_a_grown_catalogue_comes_back_with_its_versions(learned):
    with Workspace.writing(learned) as workspace:
        dataset = workspace.state().dataset
        items = type(dataset.items).of([*dataset.items, "00 a later item"])
        catalogue = Catalogue(items, (30, 31), declared=True)
        groups = tuple(group.with_items(items) for group in dataset.groups)
        held_out = dataset.held_out.with_items(items)
        workspace.commit(State(replace(dataset.over(items), catalogue=catalogue), workspace.state().chain))
    found = reloaded(learned).dataset
    assert found.catalogue == catalogue
    assert found.held_out.digest() == held_out.digest()
    assert found.data_name == found.recounted().data_name
    assert [group.digest() for group in found.groups] == [group.digest() for group in groups]


class TestItemsThatFollowThePeople:
    """Nothing is stored but who has what."""

    @pytest.fixture
    def following(self, learned):
        with Workspace.writing(learned) as workspace:
            workspace.commit(replace(workspace.state(), dataset=workspace.state().dataset.following()))
        return learned

    def test_there_is_no_list_and_the_items_come_back(self, following, versions):
        assert not list(following.glob("catalogue*"))
        found, before = reloaded(following).dataset, versions.learned.dataset
        assert found.catalogue is None
        assert {*found.items} == {
            part.items[number] for part in (*before.groups, before.held_out) for number in part.item_index.tolist()
        }
        assert found.items.is_sorted
        assert all(part.items == found.items for part in (*found.groups, found.held_out))

    def test_a_bucket_whose_rows_stay_keeps_its_file_whatever_items_go(self, dealt_out, tmp_path):
        following = dealt_out.learn(tmp_path / "shop")
        with Workspace.writing(following) as workspace:
            workspace.commit(replace(workspace.state(), dataset=workspace.state().dataset.following()))
        with Workspace.writing(following) as workspace:
            before, known = workspace.manifest.buckets, workspace.state().dataset
            alone = known.groups[3].users[0]
            number = known.find(alone).bucket
            rows = Interactions.from_columns(pa.array([alone] * 2), pa.array(["00 of one alone", "zz"]), [1.0, 2.0])[0]
            workspace.commit(replace(workspace.state(), dataset=grown(known, rows, ALONE)))
            grew = workspace.manifest.buckets
        with Workspace.writing(following) as workspace:
            known = workspace.state().dataset
            assert known.items[0] == "00 of one alone"
            workspace.commit(replace(workspace.state(), dataset=known.without([alone], [])))
            after = workspace.manifest.buckets
        for one, other in ((before, grew), (grew, after)):
            stayed = [was == now for was, now in zip(one, other, strict=True)]
            assert stayed == [place != number for place in range(8)]
        assert "00 of one alone" not in reloaded(following).dataset.items


def test_an_empty_group_comes_back(learned):
    with Workspace.writing(learned) as workspace:
        dataset = workspace.state().dataset
        empty = dataset.groups[1].without(users=dataset.groups[1].users.texts())
        groups = (dataset.groups[0], empty, *dataset.groups[2:])
        workspace.commit(State(dataset.with_groups(groups=groups), workspace.state().chain))
    found = reloaded(learned).dataset.groups
    assert [group.digest() for group in found] == [group.digest() for group in groups]
    assert len(found[1].users) == 0


def test_a_changed_config_goes_by_another_name(learned):
    with Workspace.writing(learned) as workspace:
        config = workspace.state().dataset.config.changed(epochs=7)
        workspace.commit(changed(workspace.state(), config=config, scale=RatingScale(0.5, 5.0)))
        assert workspace.manifest.config.startswith("config-")
    assert reloaded(learned).dataset.config.epochs == 7
    assert reloaded(learned).dataset.scale == RatingScale(0.5, 5)
    assert not (learned / "config.json").exists()


@pytest.mark.parametrize(
    "cohesion", [(Cohesion(0.1, 0.0), Cohesion(1 / 3, 0.01), None, Cohesion(2.0, 0.0)), (None,) * 4]
)
def test_cohesion_comes_back_as_it_was(learned, cohesion):
    with Workspace.writing(learned) as workspace:
        workspace.commit(changed(workspace.state(), cohesion=cohesion))
        records = workspace.manifest.groups
        assert [group.cohesion for group in records] == [known and known.value for known in cohesion]
        assert [group.cohesion_error for group in records] == [known and known.error for known in cohesion]
    assert reloaded(learned).dataset.cohesion == cohesion


def test_cohesion_of_other_groups_is_refused(learned, content_of):
    before = content_of(learned)
    with Workspace.writing(learned) as workspace, pytest.raises(WrongUse, match="one number for each"):
        workspace.commit(changed(workspace.state(), cohesion=(None,)))
    assert content_of(learned) == before


def test_a_state_whose_checkpoints_are_not_there_is_refused(versions, learned, content_of):
    before = content_of(learned)
    with Workspace.writing(learned) as workspace, pytest.raises(WorkspaceError, match="holds no checkpoint"):
        workspace.commit(versions.forgotten)
    assert content_of(learned) == before
