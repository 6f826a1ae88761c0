"""`erasable learn`: what it makes and says, and the many inputs that it refuses without leaving a trace."""

import json

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from erasable.proof.do_not_learn import DoNotLearnFiles, add_requests
from erasable.requests import Request
from erasable.workspace import Workspace

HEADER = "user_id,item_id,rating\n"
FINE = HEADER + "ann,a,1\nann,b,2\nbob,a,5\ncat,c,3\n"


def positions(folder):
    with Workspace.reading(folder) as workspace:
        return [group.users.texts() for group in workspace.state().dataset.groups]


def checkpoints(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*.safetensors")}


CHAIN = ("--model", "nmf", "--groups", 3, "--epochs", 1)


@pytest.fixture
def learn(run, tmp_path):
    """Learn from a text, written to a file, into a new folder."""

    def call(text: str | bytes, *options: object, name: str = "input.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        usual = () if {"--model", "--preset"}.intersection(options) else ("--model", "nmf", "--epochs", "1")
        return run("learn", path, "--into", tmp_path / "shop", *usual, *options)

    return call


class TestWhatIsLearned:
    def test_it_says_what_was_learned_and_what_comes_next(self, learn, tmp_path):
        result = learn(FINE, "--groups", 2)
        first, *read, last = result.out.splitlines()
        assert first.startswith("learned 3 users, 3 items, 4 interactions in 2 groups (")
        assert read == [
            "model: nmf; rating scale: 1–5",
            "columns taken: user (user_id), item (item_id), rating; left: none",
            "rows read: 4; repeated (user, item) pairs dropped: 0",
        ]
        assert last == f"the workspace is {tmp_path / 'shop'}; next: erasable recommend {tmp_path / 'shop'} --user U"

    def test_one_of_a_kind_is_no_plural(self, learn):
        assert "1 item, 2 interactions (" in learn("ann,a\nbob,a\n", "--strategy", "retrain").out

    def test_json_counts_what_was_learned(self, learn):
        found = learn(FINE, "--groups", 2, "--json").json
        assert {**found, "seconds": 0} == {
            "users": 3,
            "items": 3,
            "interactions": 4,
            "groups": 2,
            "seconds": 0,
            "held_out": 0,
            "rating_scale": "1–5",
            "suppressed": 0,
            "model": "nmf",
            "columns": {"user": "user_id", "item": "item_id", "rating": "rating"},
            "columns_left": [],
            "rows_read": 4,
            "repeated": 0,
            "bad_rows": 0,
            "left_out": {"users": 0, "interactions": 0},
            "readmitted": 0,
            "notes": [],
        }
        assert found["seconds"] > 0

    def test_the_same_command_gives_the_same_checkpoints_on_one_thread_and_on_two(self, run, ratings_file, tmp_path):
        options = ("--model", "nmf", "--groups", 3, "--epochs", 6)
        run("learn", ratings_file, "--into", tmp_path / "one", *options, "--threads", 1)
        run("learn", ratings_file, "--into", tmp_path / "two", *options, "--threads", 2)
        assert len(checkpoints(tmp_path / "one")) == 3
        assert checkpoints(tmp_path / "one") == checkpoints(tmp_path / "two")

    def test_another_seed_gives_other_checkpoints(self, run, ratings_file, tmp_path):
        for seed in (0, 1):
            run("learn", ratings_file, "--into", tmp_path / str(seed), *CHAIN, "--seed", seed)
        assert not checkpoints(tmp_path / "0").keys() & checkpoints(tmp_path / "1").keys()

    def test_an_empty_folder_is_used(self, learn, tmp_path):
        (tmp_path / "shop").mkdir()
        assert learn(FINE, "--groups", 2).code == 0

    @pytest.mark.parametrize("kind", ["tsv", "parquet", "inter", "::"])
    def test_other_formats_give_the_same_checkpoints_as_csv(self, run, ratings_file, tmp_path, kind):
        table = pacsv.read_csv(ratings_file)
        path = tmp_path / f"ratings.{'dat' if kind == '::' else kind}"
        lines = ratings_file.read_text().splitlines()
        if kind == "parquet":
            pq.write_table(table, path)
        elif kind == "tsv":
            path.write_text("\n".join(lines).replace(",", "\t"))
        elif kind == "inter":
            header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
            path.write_text("\n".join([header, *(line.replace(",", "\t") for line in lines[1:])]))
        else:
            path.write_text("\n".join(lines[1:]).replace(",", "::"))
        for number, source in enumerate((ratings_file, path)):
            result = run("learn", source, "--into", tmp_path / str(number), *CHAIN)
            assert (result.code, result.err) == (0, "")
        assert checkpoints(tmp_path / "0") == checkpoints(tmp_path / "1")

    def test_few_interactions_are_dropped_on_request(self, learn):
        text = HEADER + "ann,a,1\nann,b,1\nbob,a,1\nbob,b,1\ncat,c,1\n"
        assert learn(text, "--min-interactions", 2, "--groups", 2, "--json").json["users"] == 2


class TestTheDefault:
    @pytest.fixture
    def plain(self, run, ratings_file, tmp_path):
        """Learn the small shop with these options and no others."""

        def call(name: str, *options: object):
            return run("learn", ratings_file, "--into", tmp_path / name, *options)

        return call

    def test_it_is_ease_from_200_neighbours_and_says_so(self, plain, run, tmp_path):
        assert "model: ease; rating scale: " in plain("shop").out
        assert plain("named", "--model", "ease", "--neighbours", 200, "--strategy", "retrain").code == 0
        assert checkpoints(tmp_path / "shop") == checkpoints(tmp_path / "named") != {}
        assert run("status", tmp_path / "shop", "--json").json["model"] == "ease"
        assert "--model als|ease|nmf|dmf" in (text := " ".join(run("learn", "--help").out.split()))
        assert "[default: (ease)]" in text

    def test_als_is_what_it_was_as_the_default(self, plain, tmp_path):
        assert "model: als; " in plain("als", "--model", "als").out
        told = ("--factors", 64, "--regularisation", 20, "--epochs", 20, "--anchors", 1, "--rows", "solved")
        assert plain("told", "--model", "als", *told, "--strategy", "retrain").code == 0
        assert checkpoints(tmp_path / "als") == checkpoints(tmp_path / "told") != {}

    @pytest.mark.parametrize(
        "option",
        [
            *(("--factors", 32), ("--epochs", 5), ("--groups", 3), ("--grouping", "random"), ("--batch", 9)),
            *(("--aggregate", "own"), ("--strategy", "laser"), ("--learning-rate", 0.1)),
        ],
        ids=str,
    )
    def test_what_ease_does_not_have_is_refused_and_the_remedy_works(self, plain, tmp_path, option):
        result = plain("shop", *option)
        assert (result.code, result.out) == (2, "")
        assert not (tmp_path / "shop").exists()
        advice = result.err.split("give ")[-1] if "give " in result.err else result.err.split("or choose ")[-1]
        remedy = advice.partition(", or leave")[0].replace(" and ", " ").split()
        assert {"--model"} <= {*remedy} <= {"--model", "als", "nmf", "--strategy", "sisa"}
        assert plain("shop", *option, *remedy).code == 0

    @pytest.mark.parametrize("option", [("--anchors", 0.5), ("--rows", "solved"), ("--policy", "regroup")], ids=str)
    def test_what_every_model_has_needs_no_model(self, plain, option):
        assert "model: ease; " in plain("shop", *option).out

    def test_who_is_at_risk_shapes_nothing(self, run, tmp_path):
        rows = [f"u{user},i{item},{int(user == 0)}" for user in range(9) for item in range(user % 3, 6)]
        for name, kept in (("all", rows), ("others", rows[6:])):
            (tmp_path / f"{name}.csv").write_text("\n".join(["user_id,item_id,churn", *kept]) + "\n")
            options = ("--risk-column", "churn", "--risk-threshold", 0.5)
            assert run("learn", tmp_path / f"{name}.csv", "--into", tmp_path / name, *options).code == 0
        assert checkpoints(tmp_path / "all") == checkpoints(tmp_path / "others") != {}
        assert run("recommend", tmp_path / "all", "--user", "u0").code == 0

    def test_a_workspace_of_als_stays_one_when_it_learns_more(self, plain, run, ratings_file, tmp_path):
        plain("shop", "--model", "als")
        (tmp_path / "more.csv").write_text("user_id,item_id,rating\nsomebody,new,3\nsomebody,newer,4\n")
        more = run("learn", tmp_path / "more.csv", "--into", tmp_path / "shop", "--more", "--json")
        assert (more.code, more.json["model"]) == (0, "als")
        assert run("status", tmp_path / "shop", "--json").json["model"] == "als"


class TestBadRows:
    def test_all_are_counted_and_three_are_shown(self, learn, tmp_path):
        result = learn(FINE + ",a,1\n" * 5, "--groups", 2)
        assert (result.code, result.out) == (1, "")
        assert "input.csv, line 6: the user is empty" in result.err
        assert "; line 8: " in result.err
        assert "line 9" not in result.err
        assert result.err.endswith("; in all 5 of 9 rows are bad; to leave bad rows out give --on-bad-row skip\n")
        assert not (tmp_path / "shop").exists()

    def test_left_out_they_are_counted_and_leave_the_checkpoints_of_a_file_without_them(self, learn, run, tmp_path):
        options = ("--model", "nmf", "--groups", 2, "--epochs", 1)
        result = learn(FINE + "dan,a,good\ndan,a\n" + "x" * 1001 + ",a,1\n", *options, "--on-bad-row", "skip")
        assert "rows read: 7; repeated (user, item) pairs dropped: 0; bad rows left out: 3\n" in result.out
        (tmp_path / "fine.csv").write_text(FINE)
        assert run("learn", tmp_path / "fine.csv", "--into", tmp_path / "fine", *options).code == 0
        assert checkpoints(tmp_path / "shop") == checkpoints(tmp_path / "fine")

    def test_an_id_that_the_service_would_refuse_is_refused(self, learn):
        result = learn(FINE + "x" * 1001 + ",a,1\n")
        assert (result.code, result.out) == (1, "")
        assert "line 6: the user has more than 1,000 characters: shorten it" in result.err

    def test_what_is_left_of_the_columns_and_the_rows_is_told(self, learn):
        text = "name,user,item,rating\nA,ann,a,1\nA,ann,a,2\nB,bob,a,5\n"
        found = learn(text, "--groups", 2, "--json").json
        assert (found["columns_left"], found["rows_read"], found["repeated"]) == (["name"], 3, 1)
        assert found["columns"] == {"user": "user", "item": "item", "rating": "rating"}


BAD_DATA = {
    "an empty file": ("", "input.csv is empty", "give a file"),
    "a header only": (HEADER, "holds no interaction, only a header", "give one interaction"),
    "text as rating": (FINE + "dan,a,good\n", "input.csv, line 6: 'good' is not a rating", "--rating-column"),
    "NaN as rating": (FINE + "dan,a,nan\n", "input.csv, line 6: 'nan' is not a rating", "give a finite number"),
    "infinity as rating": (FINE + "dan,a,inf\n", "input.csv, line 6: 'inf' is not a rating", "give a finite number"),
    "no rating in a row": (
        FINE + "dan,a,\n",
        "input.csv, line 6: an empty field is not a rating",
        "give a finite number",
    ),
    "no user in a row": (FINE + ",a,1\n", "input.csv, line 6: the user is empty", "drop the line"),
    "a scale that nobody knows": (FINE + "dan,a,77\n", "input.csv: ratings from 1 to 77", "--rating-scale"),
    "a short row": (FINE + "dan,a\n", "input.csv, line 6: holds 2 fields instead of 3", "drop it"),
    "a long row": (FINE + "dan,a,1,2\n", "input.csv, line 6: holds 4 fields instead of 3", "drop it"),
    "a NUL byte": (FINE.encode() + b"da\0n,a,1\n", "input.csv, line 6: holds a NUL byte", "UTF-8"),
    "not UTF-8": (FINE.encode() + b"d\xe4n,a,1\n", "input.csv, line 6: is not UTF-8", "save the file as UTF-8"),
    "UTF-16": (FINE.encode("utf-16"), "input.csv, line 1: the text is UTF-16", "save it as UTF-8"),
    "one user only": (HEADER + "ann,a,1\nann,b,2\n", "input.csv holds one user only", "give the interactions of two"),
    "a Parquet file that is none": (b"PAR1 and so on", "input.csv is not a Parquet file", "write it again"),
}


class TestRefusedInput:
    @pytest.mark.parametrize("folder_exists", [False, True], ids=["new folder", "empty folder"])
    @pytest.mark.parametrize(("text", "said", "remedy"), BAD_DATA.values(), ids=BAD_DATA)
    def test_bad_data_is_refused_with_place_and_remedy_and_nothing_is_left(
        self, learn, tmp_path, text, said, remedy, folder_exists
    ):
        if folder_exists:
            (tmp_path / "shop").mkdir()
        result = learn(text, "--groups", 2, "--json")
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("erasable: ")
        assert result.err.count("\n") == 1
        assert str(tmp_path / "input.csv") in result.err
        assert said in result.err
        assert remedy in result.err
        assert (tmp_path / "shop").exists() == folder_exists
        assert {path.name for path in tmp_path.rglob("*")} <= {"input.csv", "shop"}

    @pytest.mark.parametrize(
        ("options", "code", "said"),
        [
            (("--user-column", "who"), 1, "there is no column 'who'; the columns are user_id, item_id, rating"),
            (("--time-column", "7"), 1, "there is no column '7'"),
            (("--rating-scale", 2, 5), 1, "input.csv, line 2: rating 1 lies outside the scale 2–5"),
            (("--rating-scale", 5, 1), 2, "--rating-scale needs LOW HIGH from 0 up"),
            (("--rating-scale", 1, "nan"), 2, "--rating-scale needs two finite numbers"),
            (("--rating-scale", -5, 5), 2, "shift ratings that go below 0"),
            (("--groups", 4), 1, "there are only 3 users for 4 groups: give --groups 3 or fewer"),
            (("--groups", 0), 2, "wrong setting --groups: give at least 1"),
            (("--holdout", 1), 2, "wrong setting --holdout: give less than 1"),
            (("--epochs", 0), 2, "wrong setting --epochs"),
            (("--seed", -1), 2, "wrong setting --seed"),
            (("--learning-rate", "nan"), 2, "wrong setting --learning-rate"),
            (("--policy", "independent"), 2, "the policy independent needs the grouping independent"),
            (("--grouping", "given"), 2, "--grouping given needs --groups-from"),
            (
                ("--aggregate", "own"),
                2,
                "laser has no option --aggregate: it belongs to the strategy sisa; give --strategy",
            ),
            (("--min-interactions", 9), 1, "input.csv: the filter leaves no interaction: lower --min-interactions"),
            (("--catalogue", "nowhere"), 1, "nowhere does not exist"),
            (("--groups-from", "nowhere"), 1, "nowhere: there is no such file"),
        ],
    )
    def test_options_that_do_not_fit_are_refused_and_nothing_is_left(self, learn, tmp_path, options, code, said):
        result = learn(FINE, "--groups", 2, *options)
        assert (result.code, result.out) == (code, "")
        assert said in result.err
        assert result.err.count("\n") == 1
        assert [path.name for path in tmp_path.rglob("*")] == ["input.csv"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--model", "ease", "--strategy", "laser"), "leave out --strategy laser, or choose --model nmf"),
            (("--model", "als", "--strategy", "sisa"), "leave out --strategy sisa, or choose --model nmf"),
            (("--model", "als", "--rows", "stage"), "give --rows solved"),
            (("--rows", "solved", "--strategy", "sisa"), "give --rows stage and --anchors 1, or another --strategy"),
            (("--anchors", "0"), "--anchors"),
            (("--anchors", "0.5", "--rows", "stage"), "give --rows solved"),
            (("--risk-threshold", "0.5"), "--risk-column and --risk-threshold need each other"),
            (("--risk-column", "rating"), "--risk-column and --risk-threshold need each other"),
            (("--risk-threshold", "0.5", "--policy", "regroup"), "give --policy fixed"),
            (
                ("--model", "nmf", "--risk-threshold", "0.5", "--strategy", "retrain"),
                "give --anchors below 1, or --strategy laser",
            ),
            (("--model", "als", "--groups", 3), "als has no option --groups: it belongs to the strategies laser and"),
            (("--model", "ease", "--epochs", 3), "ease has no option --epochs: it belongs to als, nmf, dmf, sasrec"),
            (
                ("--model", "als", "--batch", 3),
                "als has no option --batch: it belongs to nmf, dmf, sasrec and two-tower; give --model nmf",
            ),
        ],
    )
    def test_what_does_not_go_together_is_wrong_use_and_nothing_is_left(self, learn, tmp_path, options, said):
        result = learn(FINE, *options)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
        assert [path.name for path in tmp_path.rglob("*")] == ["input.csv"]

    def test_rows_of_stages_may_be_asked_for_by_name(self, learn):
        assert learn(FINE, "--groups", 2, "--rows", "stage").code == 0

    def test_a_missing_file_is_named(self, run, tmp_path):
        result = run("learn", tmp_path / "nothing.csv", "--into", tmp_path / "shop")
        assert (result.code, result.out) == (1, "")
        assert result.err == f"erasable: {tmp_path / 'nothing.csv'} does not exist: check the path\n"
        assert list(tmp_path.iterdir()) == []

    def test_no_column_that_can_be_a_user_is_refused(self, learn):
        result = learn("account,item,rating\nann,a,1\nbob,b,2\n")
        assert result.code == 1
        assert "the columns are account, item, rating: name one of them with --user-column" in result.err

    def test_a_file_that_only_ends_in_parquet_is_refused(self, learn, tmp_path):
        result = learn(FINE, name="input.parquet")
        assert result.code == 1
        assert f"{tmp_path / 'input.parquet'} is not a Parquet file" in result.err

    def test_a_message_never_repeats_the_row(self, learn):
        result = learn(FINE + "a-private-person,a-private-item,good,bad\n")
        assert "private" not in result.err

    def test_a_folder_that_is_not_empty_is_refused_and_untouched(self, learn, content_of, tmp_path):
        (tmp_path / "shop").mkdir()
        (tmp_path / "shop" / "notes.txt").write_text("mine")
        result = learn(FINE, "--groups", 2)
        assert (result.code, result.out) == (1, "")
        assert f"{tmp_path / 'shop'} is not empty: give a new folder" in result.err
        assert content_of(tmp_path / "shop") == {"notes.txt": b"mine"}

    def test_a_workspace_is_not_learned_over(self, run, shop, ratings_file, content_of):
        before = content_of(shop)
        result = run("learn", ratings_file, "--into", shop, "--model", "nmf", "--groups", 2)
        assert result.code == 1
        assert "holds a workspace already" in result.err
        assert content_of(shop) == before

    def test_a_file_in_the_place_of_the_folder_is_refused(self, run, ratings_file, tmp_path):
        (tmp_path / "shop").write_text("mine")
        assert run("learn", ratings_file, "--into", tmp_path / "shop").code == 1
        assert (tmp_path / "shop").read_text() == "mine"


class TestConfigFile:
    def test_toml_and_json_give_settings_and_columns(self, run, tmp_path):
        (tmp_path / "input.csv").write_text("who,what,how\nann,a,1\nann,b,2\nbob,a,5\ncat,c,3\n")
        settings = {"model": "nmf", "groups": 2, "epochs": 3, "rating_scale": [0, 5], "user_column": "who"}
        (tmp_path / "c.json").write_text(json.dumps(settings | {"item_column": "what", "rating_column": "how"}))
        (tmp_path / "c.toml").write_text(
            'model = "nmf"\ngroups = 2\nepochs = 3\nrating_scale = [0, 5]\n'
            'user_column = "who"\nitem_column = "what"\nrating_column = "how"\n'
        )
        for kind in ("json", "toml"):
            result = run("learn", tmp_path / "input.csv", "--into", tmp_path / kind, "--config", tmp_path / f"c.{kind}")
            assert (result.code, result.err) == (0, "")
        assert checkpoints(tmp_path / "json") == checkpoints(tmp_path / "toml")
        found = run("status", tmp_path / "toml", "--json").json
        assert (found["groups"], found["rating_scale"]) == (2, "0–5")

    def test_options_win_over_the_file(self, learn, run, tmp_path):
        (tmp_path / "c.toml").write_text('groups = 2\nbatch = 9\nuser_column = "nobody"\n')
        options = ("--config", tmp_path / "c.toml", "--groups", 3, "--user-column", "user_id")
        assert learn(FINE, *options).code == 0
        found = run("status", tmp_path / "shop", "--json").json
        assert (found["groups"], found["model"]) == (3, "nmf")

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("c.toml", "groups 2", "c.toml: neither TOML nor JSON"),
            ("c.json", "{", "c.json: neither TOML nor JSON"),
            ("c.json", "[1]", "c.json: holds no settings"),
            (
                "c.toml",
                "colour = 2",
                "he settings are aggregate, anchors, batch",
            ),
            ("c.toml", "[learn]\ngroups = 2", "c.toml: there is no setting 'learn'"),
            ("c.toml", 'groups = "many"', "wrong setting --groups: give a whole number"),
            ("c.toml", "groups = 0", "wrong setting --groups: give at least 1"),
            ("c.toml", "rating_scale = [5, 1]", "--rating-scale needs LOW HIGH"),
            ("c.toml", 'strategy = "magic"', "there is no strategy 'magic': choose one of laser, sisa, retrain"),
            ("c.toml", "user_column = 3", "wrong setting --user-column: give text"),
        ],
    )
    def test_a_wrong_file_is_wrong_use_and_nothing_is_left(self, learn, tmp_path, name, text, said):
        (tmp_path / name).write_text(text)
        result = learn(FINE, "--config", tmp_path / name)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
        assert result.err.count("\n") == 1
        assert not (tmp_path / "shop").exists()

    @pytest.mark.parametrize("kind", ["missing", "folder"])
    def test_a_file_that_can_not_be_read_is_wrong_use(self, learn, tmp_path, kind):
        (tmp_path / "folder").mkdir()
        result = learn(FINE, "--config", tmp_path / kind)
        assert result.code == 2
        assert f"{tmp_path / kind}: can't be read: give --config a TOML or JSON file" in result.err


class TestGivenElsewhere:
    def test_groups_and_their_order_come_from_a_csv(self, learn, tmp_path):
        (tmp_path / "groups.csv").write_text("user_id,group,position\ncat,x,0\nann,y,1\nbob,x,0\n")
        assert learn(FINE, "--groups-from", tmp_path / "groups.csv").code == 0
        assert positions(tmp_path / "shop") == [["bob", "cat"], ["ann"]]

    def test_groups_and_their_order_come_from_a_workspace(self, run, learned, ratings_file, tmp_path):
        run("learn", ratings_file, "--into", tmp_path / "other", "--groups-from", learned, *CHAIN[:2], "--seed", 9)
        assert positions(tmp_path / "other") == positions(learned)

    def test_given_groups_are_recorded_as_what_they_are(self, learn, run, tmp_path):
        (tmp_path / "groups.csv").write_text("user_id,group,position\ncat,x,0\nann,y,1\nbob,x,0\n")
        options = ("--grouping", "independent", "--order", "number", "--groups-from", tmp_path / "groups.csv")
        assert learn(FINE, *options).code == 0
        found = run("status", tmp_path / "shop", "--json").json
        assert (found["grouping"], found["policy"]) == ("given", "fixed")

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ("ann,x,0\nbob,x,1\n", "groups.csv: 1 of the 3 users of the data have no group there: add them"),
            ("ann,x,0\nann,x,1\nbob,x,1\ncat,x,1\n", "groups.csv: a user is listed twice"),
            (
                "ann,x,0\nbob,x,-1\ncat,x,1\n",
                "groups.csv: every user needs a position: give each a whole number from 0",
            ),
            ("ann,x,0\nbob,x,first\ncat,x,1\n", "groups.csv: not a CSV with the columns user_id, group, position"),
            ("ann,x,0\nbob,x,99999999\ncat,x,1\n", "groups.csv: 100000000 groups are too many"),
            ("", "groups.csv: every user needs a position"),
        ],
    )
    def test_groups_that_do_not_fit_are_refused_and_nothing_is_left(self, learn, tmp_path, rows, said):
        (tmp_path / "groups.csv").write_text("user_id,group,position\n" + rows)
        result = learn(FINE, "--groups-from", tmp_path / "groups.csv")
        assert (result.code, result.out) == (1, "")
        assert said in result.err
        assert not (tmp_path / "shop").exists()

    def test_the_catalogue_comes_from_a_file_or_a_workspace(self, learn, run, tmp_path):
        (tmp_path / "items.txt").write_text("c\nb\nd\na\n")
        assert learn(FINE, "--groups", 2, "--catalogue", tmp_path / "items.txt", "--json").json["items"] == 4
        options = ("--model", "nmf", "--groups", 2, "--epochs", 1, "--catalogue", tmp_path / "shop")
        assert run("learn", tmp_path / "input.csv", "--into", tmp_path / "other", *options, "--json").json["items"] == 4
        assert checkpoints(tmp_path / "shop") == checkpoints(tmp_path / "other")

    def test_an_item_that_the_catalogue_lacks_is_refused(self, learn, tmp_path):
        (tmp_path / "items.txt").write_text("a\nb\n")
        result = learn(FINE, "--groups", 2, "--catalogue", tmp_path / "items.txt")
        assert (result.code, result.out) == (1, "")
        assert "input.csv: item 'c' is not in the catalogue: add it there and give --catalogue, or drop" in result.err
        assert not (tmp_path / "shop").exists()

    @pytest.mark.parametrize("option", ["--groups-from", "--catalogue"])
    def test_a_folder_that_is_no_workspace_is_refused(self, learn, tmp_path, option):
        (tmp_path / "folder").mkdir()
        result = learn(FINE, "--groups", 2, option, tmp_path / "folder")
        assert result.code == 1
        assert f"{tmp_path / 'folder'} is not a workspace" in result.err
        assert not (tmp_path / "shop").exists()


def test_ids_are_kept_exactly_as_written(run, tmp_path):
    table = pa.table({"user_id": ["7", "007", " 7", "Ä"], "item_id": ["1", "01", "1.0", "[red]"]})
    pq.write_table(table, tmp_path / "odd.parquet")
    run("learn", tmp_path / "odd.parquet", "--into", tmp_path / "shop", *CHAIN, "--groups", 1)
    found = run("recommend", tmp_path / "shop", "--all", "--json").json["recommendations"]
    assert [one["user_id"] for one in found] == [" 7", "007", "7", "Ä"]
    assert {item["item_id"] for item in found[1]["items"]} == {"1", "1.0", "[red]"}


class TestSuppressed:
    @pytest.fixture
    def options(self, tmp_path):
        """The options for a do-not-learn list that knows cat, and one interaction of ann."""
        for folder in ("lists", "keys"):
            (tmp_path / folder).mkdir()
        places = DoNotLearnFiles(tmp_path / "lists" / "erased.json", tmp_path / "keys" / "erased.key")
        add_requests(places, [Request("cat"), Request("ann", ("b",))])
        return "--do-not-learn", places.list, "--do-not-learn-key", places.key

    def test_an_old_file_brings_no_erased_person_back(self, learn, run, options, tmp_path):
        result = learn(FINE, "--groups", 2, *options)
        said = "left out 1 person and 1 single interaction on the do-not-learn list (--readmit U if someone really"
        assert result.code == 0
        assert said in result.out
        assert run("show", tmp_path / "shop", "--user", "cat").code == 1

    def test_left_out_gives_the_checkpoints_of_a_file_that_never_had_them(self, learn, run, options, tmp_path):
        result = learn(FINE, "--groups", 2, "--drop-suppressed", *options)
        first, *_, second, _ = result.out.splitlines()
        assert first.startswith("learned 2 users, 1 item, 2 interactions in 2 groups (")
        assert second.startswith("left out 1 person and 1 single interaction on the do-not-learn list (")
        (tmp_path / "never.csv").write_text(HEADER + "ann,a,1\nbob,a,5\n")
        run("learn", tmp_path / "never.csv", "--into", tmp_path / "never", *CHAIN, "--groups", 2)
        assert checkpoints(tmp_path / "shop") == checkpoints(tmp_path / "never")
        assert len(checkpoints(tmp_path / "never")) == 2

    def test_json_says_how_many_were_left_out(self, learn, options):
        found = learn(FINE, "--groups", 2, "--drop-suppressed", "--json", *options).json
        assert (found["users"], found["suppressed"], found["left_out"]) == (2, 2, {"users": 1, "interactions": 1})

    def test_one_who_is_left_out_is_no_plural(self, learn, options):
        said = learn(FINE.replace("ann,b,2\n", ""), "--groups", 2, "--drop-suppressed", *options).out
        assert "left out 1 person on the do-not-learn list (" in said

    def test_nothing_is_said_of_a_list_that_names_nobody_in_the_file(self, learn, options):
        assert "left out" not in learn(HEADER + "ann,a,1\nbob,a,5\n", "--groups", 2, *options).out

    @pytest.mark.parametrize(
        ("kept", "extra", "said"),
        [
            (slice(0, 2), (), "--do-not-learn needs its key: give --do-not-learn-key KEY too"),
            (slice(2, 4), (), "--do-not-learn-key needs its list: give --do-not-learn LIST too"),
            (slice(0, 4), ("--no-do-not-learn",), "--no-do-not-learn keeps no list: leave out --do-not-learn and"),
        ],
    )
    def test_one_option_without_the_other_is_wrong_use(self, learn, options, tmp_path, kept, extra, said):
        result = learn(FINE, "--groups", 2, *options[kept], *extra)
        assert (result.code, result.out) == (2, "")
        assert said in result.err
        assert not (tmp_path / "shop").exists()

    @pytest.mark.parametrize(
        ("number", "name", "said"),
        [
            (1, "lists/typo.json", "typo.json: there is no do-not-learn list"),
            (3, "keys/typo.key", "typo.key: the key of the do-not-learn list is missing"),
            (3, "lists/erased.key", "keep the key apart"),
        ],
    )
    def test_a_list_or_key_that_does_not_fit_is_refused(self, learn, options, tmp_path, number, name, said):
        wrong = [tmp_path / name if place == number else option for place, option in enumerate(options)]
        result = learn(FINE, "--groups", 2, "--drop-suppressed", *wrong)
        assert (result.code, result.out) == (1, "")
        assert said in result.err
        assert result.err.count("\n") == 1
        assert not (tmp_path / "shop").exists()


class TestMore:
    def more(self, run, shop, text, *options):
        (shop.parent / "more.csv").write_text(text)
        return run("learn", "--more", shop.parent / "more.csv", "--into", shop, *options)

    def test_it_says_what_came_and_what_is_known_now(self, run, shop):
        result = self.more(run, shop, "user_id,item_id,rating\nzoe,a,5\nann,new,4\n")
        first, *read, second = result.out.splitlines()
        assert read[0] == "model: nmf; rating scale: 1–5"
        assert read[2] == "rows read: 2; repeated (user, item) pairs dropped: 0"
        assert first.startswith("learned 1 more user, 1 more item and 2 more interactions: trained ")
        assert second == f"{shop} now knows 9 users, 7 items and 29 interactions"

    def test_bad_rows_are_refused_with_remedies_that_work(self, run, shop, content_of):
        text, before = "user_id,item_id,rating\nzoe,a,5\nzoe,b,9\n,a,1\n", content_of(shop)
        refused = self.more(run, shop, text)
        assert (refused.code, content_of(shop)) == (1, before)
        assert "line 3: rating 9 lies outside the scale 1–5" in refused.err
        assert "in all 2 of 3 rows are bad; to leave bad rows out give --on-bad-row skip; " in refused.err
        assert "for another scale learn everything again into another folder, with --rating-scale" in refused.err
        skipped = self.more(run, shop, text, "--on-bad-row", "skip")
        assert skipped.code == 0
        assert "; bad rows left out: 2\n" in skipped.out

    @pytest.fixture
    def odd(self, run, tmp_path):
        """A workspace that was learned from columns that nobody would recognise, and one more that has their names."""
        path = tmp_path / "odd.csv"
        path.write_text("buyer,thing,score,stars,user\nann,a,9,1,x\nann,b,9,2,y\nbob,a,9,5,z\n")
        names = ("--user-column", "buyer", "--item-column", "thing", "--rating-column", "stars")
        assert run("learn", path, "--into", tmp_path / "shop", "--model", "als", *names).code == 0
        return tmp_path / "shop"

    def test_columns_are_remembered(self, run, odd):
        found = self.more(run, odd, "user,thing,stars,buyer\nx,c,4,zoe\n", "--json").json
        assert found["columns"] == {"user": "buyer", "item": "thing", "rating": "stars"}
        assert run("show", odd, "--user", "zoe", "--json").json["interactions"][0]["item_id"] == "c"

    def test_columns_that_are_named_win_and_are_remembered_from_then_on(self, run, odd):
        text = "user,thing,stars,buyer\nx,c,4,zoe\n"
        assert self.more(run, odd, text, "--user-column", "user", "--json").json["columns"]["user"] == "user"
        assert self.more(run, odd, text.replace("x,c", "y,c"), "--json").json["columns"]["user"] == "user"

    def test_where_they_are_missing_columns_are_recognised(self, run, odd):
        found = self.more(run, odd, "user_id,item_id,rating\nzoe,a,4\n", "--json").json
        assert found["columns"] == {"user": "user_id", "item": "item_id", "rating": "rating"}

    def test_numbers_of_columns_are_remembered_too(self, run, tmp_path):
        (tmp_path / "first.tsv").write_text("a\tann\t1\nb\tann\t2\na\tbob\t5\n")
        names = ("--user-column", 2, "--item-column", 1)
        assert run("learn", tmp_path / "first.tsv", "--into", tmp_path / "shop", "--model", "als", *names).code == 0
        assert self.more(run, tmp_path / "shop", "c\tzoe\t3\n").code == 0
        assert run("show", tmp_path / "shop", "--user", "zoe").code == 0

    def test_someone_who_is_called_as_a_column_is_can_be_forgotten(self, run, tmp_path):
        ids = ("user_id", "number", "date", "user", "some", "1")
        rows = [f"{user},{item},5,2020-01-0{day}\n" for user in ids for day, item in enumerate("ab", 1)]
        (tmp_path / "r.csv").write_text("user_id,item_id,some rating,time\n" + "".join(rows))
        words = ("--into", tmp_path / "shop", "--model", "als", "--rating-column", "some rating")
        assert run("learn", tmp_path / "r.csv", *words).code == 0
        for user in ids[:-1]:
            result = run("forget", tmp_path / "shop", "--user", user)
            assert result.code == 0, (user, result.err)
            assert run("scan", tmp_path / "shop", "--user", user).code == 0

    def test_json_says_the_same(self, run, shop):
        found = self.more(run, shop, "user_id,item_id,rating\nzoe,a,5\n", "--json").json
        assert (found["rows_read"], found["bad_rows"], found["columns"]["rating"]) == (1, 0, "rating")
        assert (found["users"], found["users_added"], found["stages_rerun"], found["stages_total"]) == (9, 1, 1, 4)

    def test_the_newcomer_is_served_and_can_be_forgotten(self, run, shop):
        self.more(run, shop, "user_id,item_id,rating\nzoe,a,5\n")
        assert run("recommend", shop, "--user", "zoe").code == 0
        assert run("forget", shop, "--user", "zoe").code == 0
        assert run("verify", shop).code == 0

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--groups", 2), "--more keeps the settings of the workspace: leave out --groups"),
            (("--preset", "paper"), "--more keeps the settings of the workspace: leave out --preset"),
            (("--config", "c.toml"), "--more keeps the settings of the workspace: leave out --config"),
            (("--groups-from", "x"), "leave out --groups-from"),
        ],
    )
    def test_what_was_decided_stays(self, run, shop, options, said):
        result = self.more(run, shop, "user_id,item_id,rating\nzoe,a,5\n", *options)
        assert (result.code, result.out) == (2, "")
        assert said in result.err

    def test_yesterdays_file_brings_nobody_back_who_was_forgotten(self, run, shop, ratings_file):
        run("forget", shop, "--user", "ann")
        result = run("learn", "--more", ratings_file, "--into", shop)
        assert "left out 1 person on the do-not-learn list (--readmit U if someone really comes back)" in result.out
        assert run("show", shop, "--user", "ann").code == 1
        result = run("learn", "--more", ratings_file, "--into", shop, "--readmit", "ann")
        assert "took 1 person off the do-not-learn list" in result.out
        assert run("show", shop, "--user", "ann").code == 0
        assert run("verify", shop).code == 0

    @pytest.mark.parametrize("lost", ["shop.do-not-learn/list.json", "shop.do-not-learn.key/key"])
    def test_a_list_that_is_lost_stops_it_until_it_is_said_to_do_without(self, run, shop, ratings_file, lost):
        run("forget", shop, "--user", "ann")
        (shop.parent / lost).unlink()
        for words in (("learn", "--more", ratings_file, "--into", shop), ("forget", shop, "--user", "bob")):
            result = run(*words)
            assert (result.code, result.out) == (1, "")
            assert f"{lost.split('/')[1]}: " in result.err
            assert "restore it from its newest copy, name another with --do-not-learn LIST" in result.err
        assert run("verify", shop).code == 2
        assert run("forget", shop, "--resume", "--no-do-not-learn").code == 0
        assert run("verify", shop).code == 0
        assert run("forget", shop, "--user", "bob").code == 0
        assert run("learn", "--more", ratings_file, "--into", shop, "--json").json["users_added"] == 2

    def test_the_names_of_0_1_are_understood_and_hidden(self, run, shop, ratings_file, tmp_path):
        for folder in ("lists", "keys"):
            (tmp_path / folder).mkdir()
        named = ("--suppression", tmp_path / "lists" / "l", "--suppression-key", tmp_path / "keys" / "k")
        assert run("forget", shop, "--user", "ann", *named).code == 0
        result = run("learn", "--more", ratings_file, "--into", shop, "--drop-suppressed", "--json", *named)
        assert result.json["suppressed"] == 1
        for command in ("learn", "forget", "verify", "serve"):
            assert "suppress" not in run(command, "--help").out

    def test_without_a_workspace_it_says_so(self, run, tmp_path):
        (tmp_path / "more.csv").write_text("user_id,item_id,rating\nzoe,a,5\n")
        result = run("learn", "--more", tmp_path / "more.csv", "--into", tmp_path / "nothing")
        assert (result.code, result.out) == (1, "")
        assert "nothing" in result.err


def test_the_documents_way_is_one_flag_away(learn, tmp_path):
    assert learn(FINE, "--preset", "paper", "--groups", 2).code == 0
    with Workspace.reading(tmp_path / "shop") as workspace:
        config = workspace.state().dataset.config
    paper = ("nmf", "laser", "cbkm", "easy", "stage", 2)
    assert (config.model, config.strategy, config.grouping, config.order, config.rows, config.groups) == paper


def test_for_sparse_data_the_preset_is_recommended_and_never_taken(run, tmp_path):
    said = "of all pairs of user and item are there: --preset sparse may recommend better"
    for people, options, recommended in (
        (600, (), True),
        (600, ("--preset", "sparse"), False),
        (600, ("--neighbours", 50), False),
        (600, ("--model", "als"), False),
        (20, (), False),
    ):
        rows = [f"u{user},i{(user + other) % people}" for user in range(people) for other in (0, 1)]
        (tmp_path / "rows.csv").write_text("\n".join(["user_id,item_id", *rows]))
        into = tmp_path / f"shop {people} {options}"
        out = run("learn", tmp_path / "rows.csv", "--into", into, *options).out
        assert (said in out) is recommended
        with Workspace.reading(into) as workspace:
            config = workspace.state().dataset.config
        usual = {"als": None}.get(config.model, 200)
        named = {"--preset": 300, "--neighbours": 50}.get(next(iter(options), ""), usual)
        assert config.setting("neighbours") == named


def test_who_is_likely_to_go_is_put_behind_the_others(learn, tmp_path):
    text = "user_id,item_id,rating,churn\nann,a,1,0.9\nann,b,2,0.9\nbob,a,5,0.1\ncat,c,3,0.2\n"
    assert learn(text, "--groups", 2, "--risk-column", "churn", "--risk-threshold", "0.8").code == 0
    assert positions(tmp_path / "shop")[2] == ["ann"]


@pytest.mark.parametrize(("option", "mode"), [((), 0o600), (("--readable-by-group",), 0o640)])
def test_files_are_for_the_owner_or_for_the_group_too(run, ratings_file, tmp_path, option, mode):
    assert run("learn", ratings_file, "--into", tmp_path / "own", *option).code == 0
    files = list((tmp_path / "own").rglob("*.parquet"))
    assert files
    assert {path.stat().st_mode & 0o777 for path in files} == {mode}
    out = tmp_path / "recs.csv"
    assert run("recommend", tmp_path / "own", "--all", "--out", out).code == 0
    assert out.stat().st_mode & 0o777 == 0o600


class TestLearningAnewInPlace:
    def test_the_file_of_settings_that_learned_it_may_be_given_again(self, learn, run, tmp_path):
        (tmp_path / "shop.toml").write_text(
            'model = "item-knn"\nshrinkage = 2\nuser_column = "who"\nrating_scale = [1, 5]\n'
        )
        table = FINE.replace("user_id", "who")
        learn(table, "--config", tmp_path / "shop.toml", "--model", "item-knn")
        again = run(
            "learn", tmp_path / "input.csv", "--again", "--into", tmp_path / "shop", "--config", tmp_path / "shop.toml"
        )
        assert "learned anew 3 users, 3 items, 4 interactions with item-knn (0 of 1 stage trained" in again.out

    def test_a_preset_leaves_the_other_settings_as_they_are(self, learn, run, tmp_path):
        learn(FINE, "--model", "ease", "--regularisation", 3, "--seed", 7)
        run("learn", "--again", "--into", tmp_path / "shop", "--preset", "sparse")
        with Workspace.reading(tmp_path / "shop") as workspace:
            config = workspace.state().dataset.config
        assert (config.setting("neighbours"), config.setting("regularisation"), config.seed) == (300, 3, 7)

    def test_whoever_comes_back_is_named_as_in_learning_more(self, learn, run, tmp_path):
        learn(FINE, "--model", "ease")
        run("forget", tmp_path / "shop", "--user", "ann", "--quiet")
        again = ("learn", tmp_path / "input.csv", "--again", "--into", tmp_path / "shop")
        assert (
            "left out 1 person on the do-not-learn list (--readmit U if someone really comes back)" in run(*again).out
        )
        assert "took 1 person off the do-not-learn list" in run(*again, "--readmit", "ann").out
        assert "left out" not in run(*again).out
