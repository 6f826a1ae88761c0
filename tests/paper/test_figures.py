from erasable.paper._cells import METHODS
from erasable.paper._report import STYLES, save_figure
from erasable.plots import one_legend, panels


def drawn():
    figure, axes = panels(1, 2)
    for axis in axes.flat:
        axis.plot([1, 2], [1, 2], label="L-Rand")
    one_legend(figure, axes)
    return figure, axes


def test_a_figure_is_written_twice_and_the_same_each_time(tmp_path):
    files = save_figure(drawn()[0], tmp_path / "utility.ndcg")
    assert [file.name for file in files] == ["utility.ndcg.png", "utility.ndcg.svg"]
    before = [file.read_bytes() for file in files]
    save_figure(drawn()[0], tmp_path / "utility.ndcg")
    assert [file.read_bytes() for file in files] == before


def test_every_method_has_a_look_of_its_own():
    assert set(STYLES) == set(METHODS)
    assert len({tuple(style.values()) for style in STYLES.values()}) == len(METHODS)
