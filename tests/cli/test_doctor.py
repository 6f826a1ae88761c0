"""`erasable doctor`: the numeric environment."""

from erasable.training import numeric_environment


def test_json_names_what_equal_bytes_rest_on(run):
    found = run("doctor", "--json").json
    assert int(found.pop("cores")) >= 1
    assert found == numeric_environment()
    assert {"machine", "processor", "blas", "numpy", "scipy", "numba", "llvmlite", "erasable"} <= set(found)


def test_words_say_one_thing_a_line_and_begin_at_once(run):
    lines = run("doctor").out.splitlines()
    assert lines[0].split()[0] == "cores"
    assert [line.split()[0] for line in lines[1:]] == list(numeric_environment())
