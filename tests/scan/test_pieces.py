"""Files larger than a piece: what is planted is found in any part, also where it lies across the border of two pieces.

Pieces are made small here, and files are filled up around what is planted, so that borders fall into it.
"""

import bz2
import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Held, Residue, Target, _arrays, _source, scan_folder
from erasable.scan._source import BytesInMemory, OnDisk, ReadElsewhere, Unpacked, pieces, whole
from kit.residues import IDS, LONG_IDS, ROWS, TEXTS, VECTORS

PIECE = 2048
FILLINGS = (0, 700, 1024, 2040, 2043, 2047, 2048, 2050, 3000, 5000)
"""How many bytes stand before what is planted."""
LATIN = "somebody-Ø-7"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(_source, "PIECE", PIECE)
    monkeypatch.setattr(_arrays, "ROWS", 3)


def places_of(residues: tuple[Residue, ...]) -> set[tuple[str, str]]:
    return {(residue.place, residue.what) for residue in residues}


# Every kind of residue, in files that are small but larger than a piece

TINY = 64


@pytest.mark.parametrize("plant", [*IDS.values(), *LONG_IDS.values()], ids=[*IDS, *LONG_IDS])
def test_the_same_is_found_of_an_id_whatever_the_size_of_pieces(tmp_path, scan, long, plant, monkeypatch):
    erased, other = long
    plant(tmp_path, erased)
    monkeypatch.setattr(_source, "PIECE", TINY)
    in_pieces = scan(erased.user)
    monkeypatch.setattr(_source, "PIECE", 1 << 23)
    assert {*in_pieces.residues} == {*scan(erased.user).residues}
    assert not in_pieces.clean
    monkeypatch.setattr(_source, "PIECE", TINY)
    assert scan(other.user).clean


@pytest.mark.parametrize("plant", IDS.values(), ids=IDS)
def test_a_short_id_is_found_whatever_the_size_of_pieces(tmp_path, scan, short, plant, monkeypatch):
    monkeypatch.setattr(_source, "PIECE", TINY)
    plant(tmp_path, short[0])
    assert "id" in {residue.what for residue in scan(short[0].user).residues}
    assert scan(short[1].user).clean


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        pytest.param(plant, what, id=f"{what}: {name}")
        for what, plants in (("interactions", ROWS), ("personal row", VECTORS), ("text", TEXTS))
        for name, plant in plants.items()
    ],
)
def test_values_are_found_whatever_the_size_of_pieces(tmp_path, scan, short, plant, what, monkeypatch):
    erased, other = short
    monkeypatch.setattr(_source, "PIECE", 4 * TINY)  # no line is longer than two pieces
    plant(tmp_path, erased)
    assert {residue.what for residue in scan(erased.target).residues} == {what}
    for path in tmp_path.iterdir():
        path.unlink()
    plant(tmp_path, other)
    assert scan(erased.target).residues == ()


# Across the border of two pieces


def noise(size: int) -> bytes:
    return np.random.default_rng(size).integers(128, 255, size, dtype=np.uint8).tobytes()


RAW = {
    "bytes": lambda before, what: b"\0" + noise(before) + what + noise(3000),
    "zipped": lambda before, what: zipped(b"\0" + noise(before) + what + noise(3000)),
    "log": lambda before, what: b"started, up\n" + b"x" * before + b" said " + what + b" today\n" + b"y y\n" * 700,
    "one line": lambda before, what: b"so: " + b"x" * before + what + b"y" * 3000,
}
SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "UTF-8": str.encode,
    "UTF-16": lambda text: text.encode("utf-16-le"),
    "UTF-32": lambda text: text.encode("utf-32-le"),
    "Latin-1": lambda text: text.encode("latin-1"),
    "hexadecimal": lambda text: text.encode().hex().encode(),
    "JSON escapes": lambda text: json.dumps(text)[1:-1].encode(),
}
ESCAPED: dict[str, Callable[[str], bytes]] = {
    "XML": lambda text: "".join(f"&#{ord(letter)};" for letter in text).encode(),
    "quoted-printable": lambda text: b"".join(b"=%02X" % byte for byte in text.encode()),
    "a broken line": lambda text: text[:4].encode() + b"=\n" + text[4:].encode(),
}


def zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", content)
    return out.getvalue()


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("kind", ["bytes", "zipped"])
def test_an_id_among_bytes_is_found_across_a_border(write, scan, kind, spelled):
    for before in FILLINGS:
        write("f", RAW[kind](before, spelled(LATIN)))
        assert not scan(LATIN).clean, before
        assert scan("somebody-else-7").clean


@pytest.mark.parametrize("spelled", [SPELLINGS["UTF-8"], *ESCAPED.values()], ids=["UTF-8", *ESCAPED])
@pytest.mark.parametrize("kind", ["log", "one line"])
def test_an_id_in_a_text_is_found_across_a_border(write, scan, kind, spelled):
    for before in FILLINGS:
        write("f", RAW[kind](before, spelled("customer-1")))
        assert not scan("customer-1").clean, before
        assert scan("customer-2").clean


@pytest.mark.parametrize("spelled", [*SPELLINGS.values(), *ESCAPED.values()], ids=[*SPELLINGS, *ESCAPED])
def test_a_longer_id_across_a_border_explains_a_hit(write, scan, spelled):
    for before in FILLINGS:
        write("f", RAW["log"](before, spelled("customer-12")))
        assert scan("customer-1", held=("customer-12",)).clean, before
        assert not scan("customer-1").clean


def test_the_first_place_is_told_once(write, scan):
    write("f", b"\0" + noise(5000) + b"customer-1" + noise(5000) + b"customer-1" + noise(100))
    assert places_of(scan("customer-1").residues) == {("raw bytes at 5001 (utf-8)", "id")}


def test_a_zero_byte_anywhere_makes_a_file_binary(write, scan):
    """Escapes are no escapes in a binary file, also where the zero byte is in the last piece."""
    write("f", b"\xff\x81" + b"x" * 3000 + ESCAPED["XML"]("customer-1") + b"\xff" * 5000 + b"\0")
    assert scan("customer-1").clean


@pytest.mark.parametrize("before", [0, 1, 500, 509, 510, 511, 512, 700])
def test_rows_and_times_are_found_across_a_border(write, scan, short, before):
    erased, other = short
    filling = np.random.default_rng(before).normal(size=before).astype("<f4").tobytes()
    write("f", b"\0" + filling + erased.vector.tobytes() + filling)
    assert not scan(erased.target).clean
    assert scan(other.target).clean
    write("f", safetensors.numpy.save({"x": np.concatenate([np.zeros(before), np.array(erased.times), np.zeros(900)])}))
    assert places_of(scan(erased.target).residues)
    assert scan(other.target).clean


# Tables that are read in parts


def many(who: str, rows: int = 40, place: int = -1) -> list[str]:
    found = [f"somebody-{number:05d}" for number in range(rows)]
    found[place] = who
    return found


TABLES = {
    "parquet": lambda people, path: pq.write_table(
        pa.table({"item": ["x"] * len(people), "user_id": people}), path, row_group_size=7
    ),
    "arrow": lambda people, path: pa.feather.write_feather(pa.table({"user_id": people}), str(path), chunksize=7),
    "csv": lambda people, path: path.write_text("item,user_id\n" + "".join(f"{'x' * 90},{who}\n" for who in people)),
    "csv with quotes": lambda people, path: path.write_text(
        "item,user_id\n" + "".join(f'"{"x" * 90}, y","{who}"\n' for who in people)
    ),
    "ragged": lambda people, path: path.write_text(
        "".join(f"{who}::5{'::x' * (n % 3)}\n" for n, who in enumerate(people))
    ),
    "lines": lambda people, path: path.write_text("".join(f"{who}\n" for who in people)),
    "json": lambda people, path: path.write_text(json.dumps([{"user": who, "n": "x" * 90} for who in people])),
    "json, nested": lambda people, path: path.write_text(json.dumps({"all": {"people": [*people, "x" * 90] * 9}})),
    "json, keys": lambda people, path: path.write_text(json.dumps({"all": dict.fromkeys(people, "x" * 90)})),
    "json lines": lambda people, path: path.write_text(
        "".join(json.dumps({"user": who, "n": "x" * 90}) + "\n" for who in people)
    ),
    "database": lambda people, path: stored(people, path),
}


def stored(people: list[str], path) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE held (user_id TEXT, note TEXT)")
        connection.executemany("INSERT INTO held VALUES (?, ?)", [(who, "x" * 90) for who in people])
        connection.commit()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_short_id_is_found_in_any_row(tmp_path, scan, table):
    for place in (0, 17, 18, 19, 20, 21, -1):
        table(many("eve", place=place), tmp_path / "f")
        assert "id" in {residue.what for residue in scan("eve").residues}, place
        assert scan("zoe").clean


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_people_searched_at_once_are_found_as_if_alone(tmp_path, table):
    people = many("eve", 60)
    table([*people, "eve@example.org"], tmp_path / "f")
    erased = [*people[::2], "eve@example.org", "nobody-at-all", "zoe", *(f"stranger-{n}" for n in range(1000))]
    held = Held((people[1::2],))
    together = scan_folder(tmp_path, [Target(user) for user in erased], own_vocabulary(), held=held)
    for user in [*people[::2], "eve@example.org", "nobody-at-all", "zoe", "stranger-7"]:
        alone = scan_folder(tmp_path, [Target(user)], own_vocabulary(), held=held)
        shared = tuple(residue for residue in together.residues if user in residue.of)
        assert without_offsets(shared) == without_offsets(alone.residues), user


def without_offsets(residues: tuple[Residue, ...]) -> set[tuple[str, str]]:
    return {(place.split(" at ")[0] + place[place.rfind(" (") :], what) for place, what in places_of(residues)}


@pytest.mark.parametrize("before", range(9))
def test_interactions_are_found_across_the_border_of_parts(tmp_path, scan, short, before):
    erased, other = short
    items = [*(f"i{n}" for n in range(before)), *erased.items, *(f"j{n}" for n in range(9))]
    ratings = [*[3.0] * before, *erased.ratings, *[3.0] * 9]
    pq.write_table(pa.table({"item": items, "rating": ratings}), tmp_path / "f", row_group_size=4)
    assert {residue.what for residue in scan(erased.target).residues} == {"interactions"}
    assert scan(other.target).clean
    (tmp_path / "f").write_text("".join(f"{i},{r:g}{' ' * 90}\n" for i, r in zip(items, ratings, strict=True)) * 3)
    assert {residue.what for residue in scan(erased.target).residues} == {"interactions"}
    assert scan(other.target).clean


@pytest.mark.parametrize("before", [0, 1, 2, 5, 30])
def test_a_personal_row_is_found_across_the_border_of_parts(tmp_path, scan, short, before):
    erased, other = short
    numbers = [*np.random.default_rng(before).normal(size=before), *erased.vector.tolist(), 1.0, 2.0, 3.0]
    pq.write_table(pa.table({"x": numbers}), tmp_path / "f", row_group_size=5)
    assert {residue.what for residue in scan(erased.target).residues} == {"personal row"}
    assert scan(other.target).clean


def test_a_pair_is_found_in_the_last_row_group(tmp_path, scan):
    users = [f"u{n}" for n in range(20)]
    pq.write_table(pa.table({"user": users, "item": [f"i{n}" for n in range(20)]}), tmp_path / "f", row_group_size=3)
    assert not scan(Target("u19", items=("i19",))).clean
    assert scan(Target("u19", items=("i18",))).clean


def test_a_longer_number_in_a_later_part_explains_a_hit_among_bytes(tmp_path, scan):
    blobs = [b"\xff" + b"123456789", *[b"\xff\x00"] * 9]
    notes = [*["x"] * 9, "no 123456789"]
    pq.write_table(pa.table({"item": ["x"] * 10, "b": blobs, "note": notes}), tmp_path / "f", row_group_size=2)
    assert scan("12345678").clean


def test_what_deleted_rows_left_is_found_in_any_page(tmp_path, scan):
    path = tmp_path / "f"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("PRAGMA secure_delete = off")
        connection.execute("CREATE TABLE held (user_id TEXT, note TEXT)")
        rows = [(f"somebody-{n}", "x" * 50) for n in range(90)]
        connection.executemany("INSERT INTO held VALUES (?, ?)", [*rows, ("eve", "y")])
        connection.commit()
        connection.execute("DELETE FROM held WHERE user_id = 'eve'")
        connection.commit()
    assert path.stat().st_size > 2 * PIECE
    assert not scan("eve").clean
    assert scan("zoe").clean


def packed_by_zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, packed_by_zstd, zipped])
def test_a_large_packed_file_is_searched_without_holding_it(write, scan, pack):
    table = "item,user_id\n" + "".join(f"{number:0100d},{who}\n" for number, who in enumerate(many("eve", 200)))
    write("f", pack(table.encode()))
    assert not scan("eve").clean
    assert scan("zoe").clean


def test_a_large_document_that_is_cut_off_is_searched_as_text(write, scan):
    write("f", json.dumps({"people": [{"user": who, "n": "x" * 90} for who in many("eve")]})[:-2])
    found = scan("eve")
    assert (found.kinds["text"], found.clean) == (1, False)


def test_who_is_named_behind_a_long_list_owns_it(write, scan, short):
    erased, _ = short
    rows = [{"item": item, "rating": rating} for item, rating in zip(erased.items, erased.ratings, strict=True)]
    content = {"rows": [{"item": "x" * 80, "rating": 1}] * 60 + rows, "user": "bob"}
    write("f", json.dumps(content))
    assert scan(erased.target).clean
    assert not scan(Target("bob", items=("date",))).clean
    write("f", json.dumps({"rows": content["rows"]}))
    assert {residue.what for residue in scan(erased.target).residues} == {"interactions"}


# Where bytes come from


def test_every_source_reads_the_same(tmp_path):
    content = noise(5 * PIECE + 7)
    (tmp_path / "f").write_bytes(content)
    on_disk = OnDisk.of(tmp_path / "f")
    sources = [
        BytesInMemory(content),
        on_disk,
        ReadElsewhere(tmp_path / "f", len(content)),
        Unpacked(lambda: iter([content[:99], content[99:]]), len(content)),
    ]
    for source in sources:
        assert whole(source) == content
        assert b"".join(pieces(source)) == content
        assert source.read(3 * PIECE, 5) == content[3 * PIECE :][:5]
        assert source.read(10, 5) == content[10:15]
        assert b"".join(pieces(source, 5, PIECE + 9)) == content[5 : PIECE + 9]
    on_disk.close()


def test_held_ids_are_read_only_for_a_hit_that_needs_them(write, tmp_path):
    read = []

    class People:
        def __iter__(self):
            read.append(1)
            yield pa.array(["customer-12"])
            yield pa.chunked_array([["ann"], ["customer-13"]])

    held = Held(People())
    write("f.csv", "user_id\nann\ncustomer-2\n")
    assert scan_folder(tmp_path, [Target("customer-1")], own_vocabulary(), held=held).clean
    assert read == []
    write("f.csv", "user_id\ncustomer-12\ncustomer-13\n")
    assert scan_folder(tmp_path, [Target("customer-1")], own_vocabulary(), held=held).clean
    assert read == [1]
    write("f.csv", "user_id\ncustomer-14\n")
    assert not scan_folder(tmp_path, [Target("customer-1")], own_vocabulary(), held=held).clean
