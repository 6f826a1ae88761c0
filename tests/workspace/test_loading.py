import pytest

from erasable.workspace import Workspace


def test_a_group_is_read_when_it_is_first_asked_for_and_only_once(versions, learned):
    with Workspace.reading(learned) as workspace:
        groups = workspace.state().dataset.groups
        for file in sorted(learned.glob("data/*"))[1:]:
            file.unlink()
        assert groups[0] is groups[0]
        assert groups[0].digest() == versions.learned.dataset.groups[0].digest()
        assert len(groups) == 4


def test_groups_are_a_sequence(learned):
    with Workspace.reading(learned) as workspace:
        groups = workspace.state().dataset.groups
        assert groups[-1] is groups[3]
        assert groups[1:3] == (groups[1], groups[2])
        assert list(groups) == [groups[place] for place in range(4)]
        with pytest.raises(IndexError):
            groups[4]


def test_the_state_is_loaded_once(learned):
    with Workspace.reading(learned) as workspace:
        assert workspace.state() is workspace.state()
