"""`erasable doctor`: the numeric environment."""

from erasable.chain import numeric_environment
from kit import elsewhere


def test_json_names_what_equal_bytes_rest_on(run):
    found = run("doctor", "--json").json
    assert int(found.pop("cores")) >= 1
    assert found == numeric_environment()
    assert {"machine", "processor", "blas", "numpy", "scipy", "numba", "llvmlite", "erasable"} <= set(found)


def test_words_say_one_thing_a_line_and_begin_at_once(run):
    lines = run("doctor").out.splitlines()
    assert lines[0].split()[0] == "cores"
    assert [line.split()[0] for line in lines[1:]] == list(numeric_environment())


class TestAWorkspace:
    def test_of_here_has_nothing_to_upgrade(self, run, shop):
        assert run("doctor", shop, "--json").json["upgrade"]["needed"] is False
        assert run("doctor", shop).out.splitlines()[-1].startswith("nothing to upgrade")

    def test_of_elsewhere_is_told_what_an_upgrade_would_find(self, run, shop):
        elsewhere.moved(shop, places=[1], numba="0.1")
        found = run("doctor", shop, "--json").json
        assert found["numba"] == numeric_environment()["numba"]
        planned = found["upgrade"]
        assert (planned["steps_elsewhere"], planned["steps_replayed"], planned["steps_total"]) == (1, 2, 3)
        assert planned["differences"] == [f"numba is {found['numba']} here and was 0.1"]
        assert "an upgrade trains 2 of 3 checkpoints again here" in run("doctor", shop).out
