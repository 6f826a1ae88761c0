import numpy as np

from erasable.training import Scoring


def test_scores_come_from_the_own_row_and_the_last_shared_parameters(learned):
    scoring = Scoring(learned.state, learned.checkpoints)
    assert scoring.scores(0, 1).tolist() == [0, 9, -1, 3, 3]
    assert scoring.scores(1, 0).tolist() == [1, 0, 9, 2, 0]
    assert scoring.scores(1, 0).dtype == np.float32


def test_owned_items_are_those_in_training(learned):
    scoring = Scoring(learned.state, learned.checkpoints)
    places = [(0, 0), (0, 1), (1, 0)]
    assert [scoring.owned(*place).tolist() for place in places] == [[0], [1], [2]]


def test_top_leaves_out_owned_items_and_breaks_ties_by_number(learned):
    items, scores = Scoring(learned.state, learned.checkpoints).top(0, 1, 3)
    assert items.tolist() == [3, 4, 0]
    assert scores.tolist() == [3, 3, 0]


def test_top_gives_fewer_if_fewer_are_left(learned):
    assert len(Scoring(learned.state, learned.checkpoints).top(0, 0, 10)[0]) == 4


def test_a_checkpoint_is_read_once(learned):
    class Counting:
        reads = 0

        def get(self, fingerprint):
            self.reads += 1
            return learned.checkpoints.get(fingerprint)

    counting = Counting()
    scoring = Scoring(learned.state, counting)
    for _ in range(3):
        scoring.scores(0, 0)
        scoring.scores(1, 0)
    assert counting.reads == 3  # the shared parameters, and the rows of two stages
