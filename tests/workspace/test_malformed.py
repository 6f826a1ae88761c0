"""Whatever a document holds though its hash is right, it is refused in words or read; it never ends in a traceback."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.chain import Checkpoint, Config
from erasable.chain.dataset import no_interactions
from erasable.data import Ids
from erasable.errors import NewerDocument, WorkspaceDamaged, WorkspaceError
from erasable.models import Parameters
from erasable.workspace import Workspace
from erasable.workspace._settings_file import decode_settings, encode_settings
from erasable.workspace.checkpoints import encode_checkpoint
from erasable.workspace.manifest import decode_manifest
from erasable.workspace.tables import encode_bucket
from kit.choosing import examples
from kit.resealing import sealed, with_fields, with_file

JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    7,
    1e308,
    10**40,
    0.5,
    "",
    "x",
    "\x1b[31m",
    "a\0b",
    [],
    [1],
    ["als"],
    {},
    {"a": 1},
]
NO_OBJECTS = [
    b"",
    b"[]",
    b"null",
    b"{",
    b"7",
    b"\xff\xfe",
    b'{"format": 2}',
    b"[" * 100_000,
    b"{}",
    b'{"a": 1, "a": 2}',
]
COLUMNS = ("user_id", "item_id", "rating", "group", "held_out")
RELEASED = Path(__file__).parents[1] / "fixtures" / "workspaces" / "0.1"


def read_everything(folder: Path) -> None:
    with Workspace.reading(folder) as workspace:
        state = workspace.state()
        list(state.dataset.groups)
        assert len(state.chain) == state.dataset.stages
        for link in state.chain:
            workspace.checkpoints.get(link.fingerprint)
        dict(workspace.issued())
        workspace.documents()


def changed(document: Any) -> Iterator[Any]:
    """Return a document with each of its parts replaced by each kind of junk, left out, or doubled."""
    for path in paths_in(document):
        for junk in JUNK:
            yield put(document, path, lambda part, name, junk=junk: part.__setitem__(name, junk))
        yield put(document, path, lambda part, name: part.__delitem__(name))
        yield put(
            document,
            path,
            lambda part, name: part.append(part[name]) if isinstance(part, list) else part.update(more=1),
        )


def paths_in(document: Any) -> Iterator[list[Any]]:
    names = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for name in names:
        yield [name]
        yield from ([name, *path] for path in paths_in(document[name]))


def put(document: Any, path: list[Any], change: Any) -> Any:
    whole = deepcopy(document)
    part = whole
    for name in path[:-1]:
        part = part[name]
    change(part, path[-1])
    return whole


@pytest.fixture
def of_0_1(swift_path) -> Path:
    return Path(shutil.copytree(RELEASED / "als-anchored" / "workspace", swift_path / "shop"))


class TestSettings:
    @pytest.mark.parametrize("config", [Config(), Config(model="nmf", groups=3, rating_scale=(1, 5))])
    def test_any_part_may_be_anything(self, config):
        for document in changed(json.loads(encode_settings(config))):
            readable(json.dumps(document).encode())

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda part: st.lists(part) | st.dictionaries(st.text() | st.sampled_from(["name", "settings"]), part),
        ),
        st.sampled_from(["format", "model", "strategy", "settings", "more"]),
    )
    def test_so_it_is_for_any_json(self, value, part):
        readable(json.dumps({**json.loads(encode_settings(Config())), part: value}).encode())
        readable(json.dumps(value).encode())

    @pytest.mark.parametrize("content", NO_OBJECTS)
    def test_what_is_no_such_document_is_damaged(self, learned, content):
        with_file(learned, "config.json", content)
        with pytest.raises(WorkspaceDamaged, match=r"config\.json is damaged: restore it from a copy"):
            read_everything(learned)

    @pytest.mark.parametrize("seed", ["NaN", "Infinity", '0, "seed": 1', '"\\ud800"'])
    def test_what_two_readers_may_read_differently_is_damaged(self, learned, seed):
        text = (learned / "config.json").read_text().replace('"seed": 0', f'"seed": {seed}')
        with_file(learned, "config.json", text.encode())
        with pytest.raises(WorkspaceDamaged, match=r"config\.json is damaged"):
            read_everything(learned)

    def test_settings_that_do_not_go_together_are_of_no_version_that_is_here(self):
        document = json.loads(encode_settings(Config(model="als")))
        document["settings"]["rows"] = "stage"
        with pytest.raises(WorkspaceError, match=r"config\.json has settings that this version .* does not know"):
            decode_settings(json.dumps(document).encode(), "config.json")

    @pytest.mark.parametrize("content", [*NO_OBJECTS, b'{"model": "als", "strategy": "retrain"}'])
    def test_so_it_is_in_0_1(self, of_0_1, content):
        with_file(of_0_1, "config.json", content)
        with pytest.raises(WorkspaceDamaged, match=r"config\.json is damaged: restore it from a copy"):
            read_everything(of_0_1)

    @pytest.mark.full
    def test_any_setting_of_0_1_may_be_anything(self, of_0_1):
        good = json.loads((of_0_1 / "config.json").read_bytes())
        for document in changed(good):
            with_file(of_0_1, "config.json", json.dumps(document).encode())
            ends_in_words(of_0_1)


def refusal_of(read: Callable[..., object], *given: Any) -> str:
    """Return in which words something is refused, or nothing if it is not; whatever else is raised fails the test."""
    try:
        read(*given)
    except (WorkspaceError, NewerDocument) as error:
        return str(error)
    return ""


def readable(content: bytes) -> None:
    """Read settings, or find them refused."""
    said = refusal_of(decode_settings, content, "config.json")
    assert not said or "config.json" in said
    assert len(said) < 600


def ends_in_words(folder: Path) -> None:
    said = refusal_of(read_everything, folder)
    assert not said or str(folder) in said or "the checkpoints do not follow" in said


class TestManifests:
    def test_any_part_may_be_anything(self, every_kind):
        self.change_everything(every_kind)

    @pytest.mark.full
    def test_so_it_is_in_0_1(self, of_0_1):
        self.change_everything(of_0_1)

    def change_everything(self, folder):
        every = [*changed(json.loads((folder / "manifest.json").read_bytes()))]
        for fields in every[:: examples(quick=5, full=1)]:
            content = sealed(fields)
            said = refusal_of(decode_manifest, content, "manifest.json")
            assert len(said) < 600
            if not said:
                (folder / "manifest.json").write_bytes(content)
                ends_in_words(folder)

    @pytest.mark.parametrize("found", [2, 1, 0, "5", 5.0, None, True, [5], "x" * 5000])
    def test_a_format_that_no_release_wrote_is_damage(self, learned, found):
        with_fields(learned, lambda fields: fields.update(format=found))
        with pytest.raises(WorkspaceDamaged, match="which no release wrote: restore it from a copy") as raised:
            read_everything(learned)
        assert "use the version" not in str(raised.value)
        assert len(str(raised.value)) < 400

    def test_a_long_number_is_not_printed_whole(self, learned):
        with_fields(learned, lambda fields: fields.update(format=int("7" * 4000)))
        with pytest.raises(WorkspaceError, match=r"has the format 7777.*… and this version") as raised:
            read_everything(learned)
        assert len(str(raised.value)) < 400

    @pytest.mark.parametrize("high", [1e308, 0, -1, 0.5])
    def test_a_scale_that_can_not_be_is_damage(self, learned, high):
        with_fields(learned, lambda fields: fields["scale"].update(high=high))
        with pytest.raises(WorkspaceDamaged, match=r"manifest\.json is damaged"):
            read_everything(learned)

    @pytest.mark.parametrize("names", ["0.1", "0.2", "0.5", ""])
    def test_names_of_a_release_that_did_not_give_them_are_damage(self, learned, names):
        with_fields(learned, lambda fields: fields.update(names=names))
        with pytest.raises(WorkspaceDamaged, match=r"(manifest|config)\.json is damaged"):
            read_everything(learned)

    @pytest.mark.parametrize(
        "change",
        [
            lambda fields: fields.update(chain=[]),
            lambda fields: fields["chain"].append(fields["chain"][-1]),
            lambda fields: fields["chain"].__setitem__(1, fields["chain"][0]),
            lambda fields: fields["chain"].pop(),
            lambda fields: fields["groups"].pop(),
            lambda fields: fields["groups"].reverse(),
            lambda fields: fields["chain"][0].update(samples=-5),
            lambda fields: fields["preferences"].update(do_not_learn=["a\0b", "c/d"]),
        ],
    )
    def test_a_chain_that_does_not_fit_is_damage(self, learned, change):
        with_fields(learned, change)
        with pytest.raises(WorkspaceDamaged, match=r"manifest\.json is damaged: restore it from a copy"):
            read_everything(learned)

    @pytest.mark.parametrize("place", ["config", "bucket", "items", "slots", "histories", "catalogue", "link"])
    def test_a_file_of_another_kind_is_damage(self, learned, place):
        def point(fields):
            part, name = {
                "config": (fields, "config"),
                "bucket": (fields["buckets"][0], "file"),
                **{name: (fields["counts"], name) for name in ("items", "slots", "histories")},
                "catalogue": (fields["catalogue"], "file"),
                "link": (fields["chain"][1], "file"),
            }[place]
            part[name] = other if place in ("config", "link") else "config.json"

        other = json.loads((learned / "manifest.json").read_bytes())["buckets"][0]["file"]
        with_fields(learned, point)
        with pytest.raises(WorkspaceDamaged, match=re.escape(str(learned))):
            read_everything(learned)

    @pytest.mark.parametrize("place", ["bucket", "items", "slots", "histories"])
    @pytest.mark.parametrize("other", ["bucket", "items", "slots", "histories", "catalogue"])
    def test_so_is_another_of_our_tables(self, learned, place, other):
        fields = json.loads((learned / "manifest.json").read_bytes())
        names = {"bucket": fields["buckets"][0]["file"], "catalogue": fields["catalogue"]["file"], **fields["counts"]}
        if place == other:
            pytest.skip("that is the one")
        with_file(learned, names[place], (learned / names[other]).read_bytes())
        with pytest.raises(WorkspaceDamaged, match=re.escape(f"{learned / names[place]} is damaged")):
            read_everything(learned)


class TestBuckets:
    """Whoever can seal a manifest can put anything into a bucket: what can not be is refused in words."""

    @pytest.fixture
    def rewritten(self, dealt_out, tmp_path):
        """Return a function that changes the table of a bucket of a few people, and reads everything."""
        learned = dealt_out.learn(tmp_path / "shop")
        name = json.loads((learned / "manifest.json").read_bytes())["buckets"][1]["file"]

        def rewrite(change):
            table = pq.read_table(learned / name)
            sink = pa.BufferOutputStream()
            pq.write_table(change(table), sink)
            with_file(learned, name, sink.getvalue().to_pybytes())
            read_everything(learned)

        rewrite(lambda table: table)
        return rewrite, re.escape(f"{name} is damaged: restore it from a copy")

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: table.slice(0, 0),
            lambda table: table.filter(pc.not_equal(table["user_id"], table["user_id"][0])),
            lambda table: pa.concat_tables([table, table]),
            lambda table: table.take(list(range(len(table)))[::-1]),
            lambda table: table.sort_by("item_id"),
            lambda table: pa.concat_tables([table.slice(1), table.slice(0, 1)]),
            lambda table: table.slice(1, len(table)).sort_by([("rating", "ascending")]),
            lambda table: pa.concat_tables([table.slice(0, 1), table]),
            lambda table: put_column(table, "item_id", ["not in the catalogue"] * len(table)),
            lambda table: put_column(table, "item_id", [None] * len(table)),
            lambda table: put_column(table, "user_id", ["anne"] * len(table)),
            lambda table: put_column(table, "user_id", [None] * len(table)),
            lambda table: put_column(table, "user_id", range(len(table))),
            lambda table: put_column(table, "held_out", [True] * len(table)),
            lambda table: put_column(table, "held_out", pc.equal(table["user_id"], table["user_id"][0])),
            lambda table: put_column(table, "held_out", ["yes"] * len(table)),
            lambda table: put_column(table, "held_out", [None] * len(table)),
            lambda table: put_column(table, "rating", [float("nan")] * len(table)),
            lambda table: put_column(table, "rating", ["x"] * len(table)),
            lambda table: put_column(table, "rating", [None] * len(table)),
            lambda table: put_column(table, "time", [float("inf")] * len(table)),
            lambda table: put_column(table, "group", [4] * len(table)),
            lambda table: put_column(table, "group", [-1] * len(table)),
            lambda table: put_column(table, "group", [1e9] * len(table)),
            lambda table: put_column(table, "group", ["x"] * len(table)),
            lambda table: put_column(table, "group", [None] * len(table)),
            lambda table: put_column(table, "group", range(len(table))),
            *(lambda table, name=name: table.drop_columns([name]) for name in COLUMNS),
        ],
    )
    def test_what_can_not_be_is_damage(self, rewritten, change):
        rewrite, said = rewritten
        with pytest.raises(WorkspaceDamaged, match=said):
            rewrite(change)

    def test_people_of_another_slot_are_damage(self, dealt_out, tmp_path):
        """Else they would not be found, and could not be erased."""
        learned = dealt_out.learn(tmp_path / "shop")
        names = [one["file"] for one in json.loads((learned / "manifest.json").read_bytes())["buckets"]]
        second = dealt_out.learned.dataset.buckets[1]
        renamed = Ids.of([f"{user} too" for user in second.users])
        alien = replace(
            second, training=replace(second.training, users=renamed), held_out=no_interactions(second.training.items)
        )
        with_file(learned, names[1], encode_bucket(alien))
        with pytest.raises(WorkspaceDamaged, match=re.escape(f"{names[1]} is damaged")):
            read_everything(learned)
        # What is kept open is not read otherwise.
        with Workspace.reading(learned) as workspace:
            kept = workspace.state().dataset.kept_open()
            with pytest.raises(WorkspaceDamaged, match=re.escape(f"{names[1]} is damaged")):
                kept.buckets[1]


def put_column(table, name, values):
    place = table.column_names.index(name)
    return table.set_column(place, name, values if isinstance(values, pa.ChunkedArray) else pa.array(values))


def put_numbers(table, name, values):
    """Put whole numbers into a column, written as the tables of counts write them."""
    return put_column(table, name, pa.array([one.to_bytes(8, "little", signed=True) for one in values], pa.binary(8)))


class TestCounts:
    """So it is for what is counted of all people."""

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("slots", lambda table: table.slice(0, 0)),
            ("slots", lambda table: table.slice(1)),
            ("slots", lambda table: pa.concat_tables([table, table])),
            ("slots", lambda table: table.take(list(range(len(table)))[::-1])),
            ("slots", lambda table: put_numbers(table, "people", [-1] * len(table))),
            ("slots", lambda table: put_numbers(table, "people", [0] * len(table))),
            ("slots", lambda table: put_numbers(table, "people", [2] * len(table))),
            ("slots", lambda table: put_numbers(table, "people", [10**15] * len(table))),
            ("slots", lambda table: put_column(table, "people", ["x"] * len(table))),
            ("slots", lambda table: put_numbers(table, "slot_number", [5000 + place for place in range(len(table))])),
            ("slots", lambda table: put_numbers(table, "slot_number", [place - 9 for place in range(len(table))])),
            ("slots", lambda table: put_column(table, "digest", [b"short"] * len(table))),
            ("slots", lambda table: put_column(table, "digest", [None] * len(table))),
            ("slots", lambda table: put_column(table, "stage_no_0", [b""] * len(table))),
            ("slots", lambda table: put_column(table, "stage_no_0", [1] * len(table))),
            ("slots", lambda table: table.drop_columns(["stage_no_3"])),
            ("items", lambda table: table.slice(1)),
            ("items", lambda table: table.take(list(range(len(table)))[::-1])),
            ("items", lambda table: put_column(table, "item_id", range(len(table)))),
            ("items", lambda table: put_numbers(table, "rows", [-1] * len(table))),
            ("items", lambda table: put_column(table, "trained_rows", [None] * len(table))),
            ("items", lambda table: put_column(table, "stage_no_1", ["x"] * len(table))),
            ("items", lambda table: table.drop_columns(["stage_no_3"])),
            ("histories", lambda table: table.slice(0, 0)),
            ("histories", lambda table: table.slice(1)),
            ("histories", lambda table: put_numbers(table, "people", [-1] * len(table))),
            ("histories", lambda table: put_numbers(table, "group", [9] * len(table))),
            ("histories", lambda table: put_column(table, "length", ["x"] * len(table))),
            ("histories", lambda table: table.drop_columns(["anchor_count"])),
        ],
    )
    def test_what_can_not_be_is_damage(self, learned, kind, change):
        name = json.loads((learned / "manifest.json").read_bytes())["counts"][kind]
        sink = pa.BufferOutputStream()
        pq.write_table(change(pq.read_table(learned / name)), sink)
        with_file(learned, name, sink.getvalue().to_pybytes())
        with pytest.raises(WorkspaceDamaged, match=re.escape(f"{learned / name} is damaged: restore it from a copy")):
            read_everything(learned)


def with_header(header: object, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    start = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:start]), content[start:]


CHECKPOINT = encode_checkpoint(
    Checkpoint("a" * 64, "origin", Parameters({"item": np.ones((2, 3), np.float32)}, {"user": np.ones(4, np.float32)}))
)


class TestCheckpoints:
    @pytest.fixture
    def put(self, learned):
        """Put other content in the place of a checkpoint, and read it."""
        with Workspace.reading(learned) as workspace:
            link = workspace.manifest.chain[0]

        def put(content):
            with_file(learned, link.file, content)
            with Workspace.reading(learned) as workspace:
                return workspace.checkpoints.get(link.fingerprint)

        return put

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\xff" * 8,
            b"\xff" * 40,
            CHECKPOINT[:-1],
            CHECKPOINT + b"someone's name",
            with_header([]),
            with_header({}),
            with_header({"__metadata__": []}),
            with_header({"__metadata__": {}}),
            with_header({"__metadata__": {"erasable": "[]"}}),
            with_header({"__metadata__": {"erasable": "{}"}}),
            with_header({"__metadata__": {"erasable": "no JSON"}}),
            with_header({"__metadata__": {"erasable": '{"environment": {"a": 1}}'}}),
            with_header("[" * 5000),
        ],
    )
    def test_what_is_none_is_damage(self, put, content):
        with pytest.raises(WorkspaceDamaged, match=r"\.safetensors is damaged: restore it from a copy"):
            put(content)

    def test_any_part_of_its_header_may_be_anything(self, put):
        header, body = header_of(CHECKPOINT)
        assert put(with_header(header, body)).parameters.rows["user"].tolist() == [1, 1, 1, 1]
        for other in changed(header):
            said = refusal_of(put, with_header(other, body))
            assert not said or ".safetensors is damaged" in said

    def test_what_lies_beside_its_arrays_is_damage(self, put):
        header, body = header_of(CHECKPOINT)
        hidden = {"dtype": "U8", "shape": [4], "data_offsets": [len(body), len(body) + 4]}
        with pytest.raises(WorkspaceDamaged):
            put(with_header({**header, "hidden": hidden}, body + b"anne"))
