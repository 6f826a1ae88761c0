"""`erasable groups`: the groups in the order in which they are trained."""


def test_json_counts_users_and_interactions_by_position(run, learned, facts):
    found = run("groups", learned, "--json").json["groups"]
    assert [group["position"] for group in found] == [0, 1, 2]
    assert sorted(group["users"] for group in found) == [2, 3, 3]
    assert sum(group["interactions"] for group in found) == sum(map(len, facts.ratings.values()))
    assert [group["cohesion"] for group in found] == [None] * 3


def test_words_are_a_table(run, learned):
    lines = run("groups", learned).out.splitlines()
    assert lines[0].split() == ["position", "users", "interactions", "cohesion"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3"]
    assert {line.split()[3] for line in lines[1:]} == {"–"}


def test_someone_who_is_forgotten_is_no_longer_counted(run, shop, facts):
    run("forget", shop, "--user", facts.every_item)
    found = run("groups", shop, "--json").json["groups"]
    assert sum(group["users"] for group in found) == 7
    assert sum(group["interactions"] for group in found) == sum(map(len, facts.ratings.values())) - 6


def test_a_plot_is_not_there_yet(run, learned, tmp_path):
    result = run("groups", learned, "--plot", tmp_path / "groups.svg")
    assert (result.code, result.out) == (2, "")
    assert result.err == "erasable: --plot is not there yet: leave it out\n"
    assert list(tmp_path.iterdir()) == []
