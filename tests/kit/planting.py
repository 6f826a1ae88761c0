"""Ids planted in every place of the files that we write and of common others, to see whether a scan finds them."""

import csv
import gzip
import html
import io
import json
import re
import sqlite3
import tempfile
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from email.header import Header
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import safetensors
import safetensors.numpy

from erasable.operations import DiskStorage
from erasable.operations._vocabulary import own_vocabulary
from erasable.operations.scan import held_ids
from erasable.requests import Request
from erasable.requests.sqlite import SqliteDatabase
from erasable.scan import Held, Target, scan_folder
from kit import small_shop
from kit.asking import accepted_before

KINDS = {
    "e-mail address": "newcomer.4711@mail.example.org",
    "e-mail address with a tag": "new.comer+tag@example.org",
    "UUID": "3f2b8c1e-9d4a-4e6b-8f70-1a2b3c4d5e6f",
    "long number": "471147114711",
    "number of 8 digits": "47114711",
    "short number": "4711",
    "short name": "zora",
    "name with a dash": "newcomer-4711",
    "name with spaces": "Anna Maria Newcomer",
    "not ASCII": "Søren Åkjær",
    "Chinese": "李小龍四七一一",
    "with quotes": 'Pat "Zed" O\'Hara',
    "with separators": "hara, pat; jr|4711",
    "with signs": "corp\\anna&co=100%<7>",
    "hexadecimal": "deadbeef47114711",
}
SHORT = ("short number", "short name")
TEXTS = {
    "alone": lambda who: who,
    "session key": lambda who: f"session:{who}:1",
    "note": lambda who: f"as {who} said on the phone",
    "JSON": lambda who: json.dumps({"by": who, "n": 1}),
    "address": lambda who: f"https://shop.example/p?u={urllib.parse.quote(who, safe='')}&x=1",
    "line of a log": lambda who: f"2026-01-02T03:04:05 INFO served customer={who} in 3 ms",
    "part of a word": lambda who: f"x_{who}_y",
    "XML": lambda who: f"<who>{html.escape(who)}</who>",
}
"""What stands in a cell."""
COLUMNS = {
    "first": ("key", "note", "value"),
    "middle": ("note", "key", "value"),
    "last": ("note", "value", "key"),
    "first, beside users": ("key", "user_id", "value"),
    "last, beside users": ("user_id", "value", "note"),
    "users": ("item_id", "user_id", "rating"),
}
"""Names of columns; which of them the id stands in, by the table below."""
_PLACES = {"first": 0, "middle": 1, "last": 2, "first, beside users": 0, "last, beside users": 2, "users": 1}
_FIELDS = ("first", "users")
_FILLING = {"key": "k", "note": "nothing", "value": "v", "user_id": "ann", "item_id": "apple", "rating": "5"}

Rows = tuple[Sequence[str], list[list[str]]]


@dataclass(frozen=True)
class Plant:
    """One place for an id."""

    name: str
    kind: str
    """The kind of file."""
    file: str
    make: Callable[[bytes, str], bytes]
    """Returns what the file holds with an id planted, from what it held before."""
    as_field: bool = False
    """Whether ids of less than 8 bytes are searched there."""

    def is_searched(self, who: str) -> bool:
        """Whether the scan says that it looks there for this id."""
        return self.as_field or len(who.encode()) >= 8


@contextmanager
def planted(folder: Path, plant: Plant, who: str) -> Iterator[None]:
    """Plant an id, and put back what was there."""
    path = folder / plant.file
    before = path.read_bytes() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plant.make(before or b"", who))
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)


def foreign_plants() -> list[Plant]:
    """Return places in files of common kinds that are not ours."""
    return [*_cells(), *_json(), *_texts(), *_arrays(), *_packed()]


def own_plants(workspace: Path) -> list[Plant]:
    """Return places in every kind of file that a workspace with a queue holds."""
    found: list[Plant] = []
    for path in sorted(path for path in workspace.rglob("*") if path.is_file()):
        name = path.relative_to(workspace).as_posix()
        if path.suffix in (".json", ".jsonl"):
            found += _in_our_json(name, path.read_bytes())
        elif path.suffix == ".parquet":
            found += _in_our_tables(name, path.read_bytes())
        elif path.suffix == ".safetensors":
            found += _in_our_tensors(name)
        elif path.suffix == ".html":
            found += _in_our_page(name)
        elif path.name == "ledger.sqlite":
            found += _in_our_ledger(name)
        elif path.suffix == ".txt":
            found.append(Plant("at the end", "text of ours", name, lambda old, who: old + f"\n{who}\n".encode()))
    return found


# Tables


def _cells() -> Iterator[Plant]:
    for (table, write), (place, names), (text, spell) in product(_TABLES.items(), COLUMNS.items(), TEXTS.items()):
        alone = text == "alone" and place in _FIELDS
        yield Plant(
            f"{place} column, {text}",
            table,
            f"foreign/{re.sub('[^a-z0-9]', '-', table.lower())}.bin",
            lambda _, who, write=write, names=names, place=place, spell=spell: write(_rows(names, place, spell(who))),
            as_field=alone,
        )


def _rows(names: Sequence[str], place: str, cell: str) -> Rows:
    rows = [[f"{_FILLING[name]}{number}" for name in names] for number in range(4)]
    rows[2][_PLACES[place]] = cell
    return names, rows


def _columns(rows: Rows) -> dict[str, list[str]]:
    return {name: [row[place] for row in rows[1]] for place, name in enumerate(rows[0])}


def _delimited(separator: str, codec: str = "utf-8") -> Callable[[Rows], bytes]:
    def write(rows: Rows) -> bytes:
        out = io.StringIO()
        csv.writer(out, delimiter=separator).writerows([rows[0], *rows[1]])
        return out.getvalue().encode(codec)

    return write


def _database(rows: Rows, setting: str = "delete", deleted: bool = False) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA secure_delete = off")
            connection.execute(f"PRAGMA journal_mode = {setting}")
            connection.execute(f"CREATE TABLE held ({', '.join(f'{name} TEXT' for name in rows[0])})")
            connection.executemany("INSERT INTO held VALUES (?, ?, ?)", rows[1])
            connection.commit()
            if deleted:
                connection.execute("DELETE FROM held WHERE rowid = 3")
                connection.commit()
            if setting == "wal":
                return Path(f"{path}-wal").read_bytes()
        return path.read_bytes()


def _parquet(**options: Any) -> Callable[[Rows], bytes]:
    def write(rows: Rows) -> bytes:
        out = io.BytesIO()
        pq.write_table(pa.table(_columns(rows)), out, **options)
        return out.getvalue()

    return write


def _feather(**options: Any) -> Callable[[Rows], bytes]:
    def write(rows: Rows) -> bytes:
        out = io.BytesIO()
        pyarrow.feather.write_feather(pa.table(_columns(rows)), out, **options)
        return out.getvalue()

    return write


def _arrow_stream(rows: Rows) -> bytes:
    out, table = io.BytesIO(), pa.table(_columns(rows))
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return out.getvalue()


def _excel(rows: Rows) -> bytes:
    cells = "".join(f"<si><t>{html.escape(cell, quote=False)}</t></si>" for row in rows[1] for cell in row)
    return _zipped("xl/sharedStrings.xml", f"<?xml version='1.0'?><sst>{cells}</sst>".encode())


def _dump(rows: Rows) -> bytes:
    lines = (", ".join("'" + cell.replace("'", "''") + "'" for cell in row) for row in rows[1])
    return "".join(f"INSERT INTO held ({', '.join(rows[0])}) VALUES ({line});\n" for line in lines).encode()


_TABLES: dict[str, Callable[[Rows], bytes]] = {
    "CSV": _delimited(","),
    "CSV, UTF-16": _delimited(",", "utf-16"),
    "CSV with semicolons": _delimited(";"),
    "TSV": _delimited("\t"),
    "SQLite": _database,
    "SQLite, deleted row": lambda rows: _database(rows, deleted=True),
    "SQLite, write-ahead log": lambda rows: _database(rows, "wal"),
    "Parquet, zstd": _parquet(compression="zstd"),
    "Parquet, plain": _parquet(compression="none", use_dictionary=False, write_statistics=False),
    "Feather, lz4": _feather(compression="lz4"),
    "Feather, plain": _feather(compression="uncompressed"),
    "Arrow stream, zstd": _arrow_stream,
    "JSON records": lambda rows: json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1]]).encode(),
    "JSON lines": lambda rows: "".join(
        json.dumps(dict(zip(rows[0], row, strict=True)), ensure_ascii=False) + "\n" for row in rows[1]
    ).encode(),
}
_ONE_BY_ONE: dict[str, Callable[[Rows], bytes]] = {"Excel": _excel, "SQL dump": _dump}


# JSON


def _json() -> Iterator[Plant]:
    shapes: dict[str, Callable[[str], Any]] = {
        "value": lambda who: {"a": {"b": [1, {"c": who}]}},
        "key": lambda who: {"a": {who: 1, "ann": 2}},
        "list": lambda who: ["ann", who, "bob"],
        "in a list of lists": lambda who: [["k", 1], [who, 2]],
        "user": lambda who: {"user_id": who, "n": 1},
        "key with more": lambda who: {f"user:{who}": 1},
        "key that ends like a field": lambda who: {f"{who}_user_id": 1},
    }
    for name, shape in shapes.items():
        field = "more" not in name and "ends" not in name
        for spaces, ascii_only in ((None, True), (2, False)):
            yield Plant(
                f"{name}, {'escaped' if ascii_only else 'as it is'}",
                "JSON",
                "foreign/x.json",
                lambda _, who, shape=shape, spaces=spaces, ascii_only=ascii_only: json.dumps(
                    shape(who), indent=spaces, ensure_ascii=ascii_only
                ).encode(),
                as_field=field,
            )
    yield Plant(
        "number under any key",
        "JSON",
        "foreign/x.json",
        lambda _, who: json.dumps({"ref": int(who) if who.isdigit() else who}).encode(),
    )


# Text


def _texts() -> Iterator[Plant]:
    shapes: dict[str, Callable[[str], str]] = {
        "log": lambda who: f"begun\n03:04 read {who} from the queue\nended\n",
        "XML": lambda who: f"<?xml version='1.0'?>\n<people><p id=\"1\">{html.escape(who)}</p></people>\n",
        "XML, attribute": lambda who: f'<people><p who="{_xml_attribute(who)}"/></people>\n',
        "HTML": lambda who: f"<html><body><p>{html.escape(who)}</p></body></html>\n",
        "INI": lambda who: f"[shop]\nlast = {who}\nn = 3\n",
        "INI, section": lambda who: f"[{who}]\nn = 3\n",
        "TOML": lambda who: f"[shop]\nlast = {json.dumps(who, ensure_ascii=False)}\n",
        "YAML": lambda who: f"shop:\n  seen:\n    - '{who.replace(chr(39), chr(39) * 2)}'\n    - 'bob'\n",
        "YAML, key": lambda who: f"shop:\n  {json.dumps(who, ensure_ascii=False)}: 3\n",
        "mail": lambda who: f"From: shop@example.org\nTo: <{who}>\nSubject: hello\n\nDear {who},\n",
        "mail, encoded header": lambda who: (
            f"Subject: {Header(f'for {who}', 'utf-8', maxlinelen=900).encode()}\n\nhello\n"
        ),
        "Markdown": lambda who: f"# Requests\n\n- {who} (phone)\n- bob\n",
        "address in a log": lambda who: f'1.2.3.4 - "GET /u/{urllib.parse.quote(who)}?a=1 HTTP/1.1" 200\n',
        "form": lambda who: urllib.parse.urlencode({"a": 1, "u": who, "b": 2}) + "\n",
        "Python": lambda who: f"seen = {who!r}\n",
    }
    for name, shape in shapes.items():
        yield Plant("a text", name, "foreign/x.txt", lambda _, who, shape=shape: shape(who).encode())
    for codec in ("utf-16", "utf-32"):
        yield Plant(
            "a text", f"log, {codec}", "foreign/x.txt", lambda _, who, codec=codec: f"read {who} again\n".encode(codec)
        )
    for (name, write), (place, names) in product(_ONE_BY_ONE.items(), COLUMNS.items()):
        yield Plant(
            f"{place} column, alone",
            name,
            "foreign/x.bin",
            lambda _, who, write=write, names=names, place=place: write(_rows(names, place, who)),
        )


def _xml_attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


# Arrays and packed files


def _arrays() -> Iterator[Plant]:
    def tensors(arrays: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
        return safetensors.numpy.save(arrays, metadata=metadata)

    zeros = np.zeros(2, dtype=np.float32)
    shapes: dict[str, tuple[Callable[[str], bytes], bool]] = {
        "safetensors, metadata": (lambda who: tensors({"x": zeros}, {"for": who}), True),
        "safetensors, key of metadata": (lambda who: tensors({"x": zeros}, {who: "1"}), True),
        "safetensors, name": (lambda who: tensors({"x": zeros, who: zeros}), True),
        "safetensors, inside a name": (lambda who: tensors({f"row.{who}.w": zeros}), False),
        "safetensors, bytes": (lambda who: tensors({"x": np.frombuffer(who.encode(), np.uint8)}), False),
        "npy, text": (lambda who: _saved(np.array(["ann", who, "bob"])), True),
        "npy, bytes": (lambda who: _saved(np.array([b"ann", who.encode(), b"bob"])), True),
        "npz": (lambda who: _saved_together(users=np.array(["ann", who])), True),
        "npz, packed": (lambda who: _saved_together(packed=True, users=np.array(["ann", who])), True),
        "npz, name": (lambda who: _saved_together(**{who.replace("/", " "): zeros}), True),
        "any bytes": (lambda who: b"\x00\x01\xff" + who.encode() + b"\x00\xfe", False),
    }
    for name, (shape, field) in shapes.items():
        yield Plant("an array", name, "foreign/x.bin", lambda _, who, shape=shape: shape(who), as_field=field)
    yield Plant("an array", "npy, number", "foreign/x.bin", lambda _, who: _saved(_number(who)))
    yield Plant("an array", "safetensors, number", "foreign/x.bin", lambda _, who: tensors({"x": _number(who)}))


def _number(who: str) -> np.ndarray:
    return np.array([1, int(who), 3]) if who.isdigit() else np.frombuffer(who.encode(), np.uint8)


def _saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _saved_together(packed: bool = False, **arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **arrays)
    return out.getvalue()


def _packed() -> Iterator[Plant]:
    csv_of = _TABLES["CSV"]
    for place, names in COLUMNS.items():
        for name, pack in (("gzip", gzip.compress), ("zip", lambda content: _zipped("old/x.csv", content))):
            yield Plant(
                f"{place} column, alone",
                f"CSV in {name}",
                "foreign/x.bin",
                lambda _, who, pack=pack, names=names, place=place: pack(csv_of(_rows(names, place, who))),
                as_field=place in _FIELDS,
            )


def _zipped(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return out.getvalue()


# Our own files


def _in_our_json(name: str, content: bytes) -> Iterator[Plant]:
    """Yield every text, every key and a new field of a JSON file of ours, alone and inside a text."""
    kind = "certificate" if name.startswith("certificates") else re.split("[-.]", name)[0] + Path(name).suffix
    lines = name.endswith(".jsonl")
    first = json.loads(content.split(b"\n")[0] if lines else content)
    for path in _paths(first):
        for text in ("alone", "note", "part of a word"):
            yield Plant(
                f"{'/'.join(map(str, path))}, {text}",
                kind,
                name,
                lambda old, who, path=path, text=text: _changed(old, path, TEXTS[text](who), lines),
            )


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where texts stand, and the objects that get a new key."""
    if isinstance(value, dict):
        yield (*above, "+key")
        yield (*above, "+value")
        for key, child in value.items():
            yield from _paths(child, (*above, key))
    elif isinstance(value, list):
        for place, child in enumerate(value[:2]):
            yield from _paths(child, (*above, place))
    elif isinstance(value, str):
        yield above


def _changed(content: bytes, path: tuple[Any, ...], text: str, lines: bool) -> bytes:
    head, _, tail = content.partition(b"\n") if lines else (content, b"", b"")
    value = json.loads(head)
    place = value
    for key in path[:-1]:
        place = place[key]
    if path[-1] == "+key":
        place[text] = 1
    elif path[-1] == "+value":
        place["remark"] = text
    else:
        place[path[-1]] = text
    return json.dumps(value).encode() + (b"\n" + tail if lines else b"")


def _in_our_tables(name: str, content: bytes) -> Iterator[Plant]:
    kind = f"{name.split('/')[0].split('-')[0]}, Parquet"
    texts = [field.name for field in pq.read_schema(io.BytesIO(content)) if pa.types.is_string(field.type)]
    for column in texts:
        yield Plant(
            f"column {column}",
            kind,
            name,
            lambda old, who, column=column: _with_cell(old, column, who),
            column == "user",
        )
    yield Plant(
        "metadata", kind, name, lambda old, who: _written(_table(old).replace_schema_metadata({"for": who})), True
    )
    yield Plant(
        "key of metadata", kind, name, lambda old, who: _written(_table(old).replace_schema_metadata({who: "1"})), True
    )
    yield Plant("name of a column", kind, name, lambda old, who: _written(_with_column(_table(old), who)))


def _table(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def _written(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _with_cell(content: bytes, column: str, who: str) -> bytes:
    table = _table(content)
    values = table[column].to_pylist() or [""]
    if not table.num_rows:
        return _written(
            pa.table(
                {name: pa.array([who if name == column else None], table[name].type) for name in table.column_names}
            )
        )
    place = table.column_names.index(column)
    return _written(table.set_column(place, column, pa.array([who, *values[1:]])))


def _with_column(table: pa.Table, name: str) -> pa.Table:
    return table.append_column(name, pa.array([0.0] * table.num_rows))


def _in_our_tensors(name: str) -> Iterator[Plant]:
    def plant(change: Callable[[dict[str, Any], dict[str, str], str], None]) -> Callable[[bytes, str], bytes]:
        def make(old: bytes, who: str) -> bytes:
            arrays = dict(safetensors.numpy.load(old))
            header = json.loads(old[8 : 8 + int.from_bytes(old[:8], "little")])
            metadata = dict(header.get("__metadata__", {}))
            change(arrays, metadata, who)
            return safetensors.numpy.save(arrays, metadata=metadata)

        return make

    def said(metadata: dict[str, str], **more: str) -> None:
        metadata["erasable"] = json.dumps({**json.loads(metadata.get("erasable", "{}")), **more})

    zeros = np.zeros(2, dtype=np.float32)
    kind = "checkpoint"
    yield Plant("metadata of ours, new field", kind, name, plant(lambda _, m, who: said(m, remark=who)), True)
    yield Plant("metadata of ours, known field", kind, name, plant(lambda _, m, who: said(m, parent=f"of {who}")))
    yield Plant("metadata of ours, key", kind, name, plant(lambda _, m, who: said(m, **{who: "1"})), True)
    yield Plant("metadata, key", kind, name, plant(lambda _, m, who: m.update({who: "1"})), True)
    yield Plant("metadata, value", kind, name, plant(lambda _, m, who: m.update({"x": who})), True)
    yield Plant("name of an array", kind, name, plant(lambda a, _, who: a.update({f"rows.{who}": zeros})))
    yield Plant(
        "an array", kind, name, plant(lambda a, _, who: a.update({"rows.x": np.frombuffer(who.encode(), np.uint8)}))
    )


def _in_our_page(name: str) -> Iterator[Plant]:
    spots = {
        "text": ("</body>", lambda who: f"<p>about {html.escape(who)}</p></body>"),
        "attribute": ("</body>", lambda who: f'<p title="{html.escape(who)}"></p></body>'),
        "comment": ("</body>", lambda who: f"<!-- {who} --></body>"),
        "style": ("</style>", lambda who: f"/* {who} */</style>"),
        "title": ("</title>", lambda who: f" {html.escape(who)}</title>"),
        "at the end": ("</html>", lambda who: f"</html>\n{who}"),
    }
    for spot, (mark, text) in spots.items():
        yield Plant(
            spot,
            "page",
            name,
            lambda old, who, mark=mark, text=text: old.decode().replace(mark, text(who), 1).encode(),
        )


_LEDGER: dict[str, tuple[str, Callable[[str], str], bool]] = {
    "reason of an event": (
        "INSERT INTO events VALUES (90001, 'r', 't', 'on hold', 'on hold', 'officer 1', ?)",
        lambda who: json.dumps({"reason": who}),
        False,
    ),
    "text in an event": (
        "INSERT INTO events VALUES (90001, 'r', 't', 'on hold', 'on hold', 'officer 1', ?)",
        lambda who: json.dumps({"reason": f"asked by {who} again", "n": 3}, ensure_ascii=False),
        False,
    ),
    "actor": ("INSERT INTO events VALUES (90001, 'r', 't', 'on hold', 'on hold', ?, '{}')", lambda who: who, False),
    "request": ("INSERT INTO events VALUES (90001, ?, 't', 'on hold', 'on hold', 'x', '{}')", lambda who: who, False),
    "name of an event": (
        "INSERT INTO events VALUES (90001, 'r', 't', ?, 'on hold', 'x', '{}')",
        lambda who: who,
        False,
    ),
    "label": ("INSERT INTO tokens VALUES ('9', 'd', 'officer', ?, 't', NULL)", lambda who: who, True),
    "inside a label": (
        "INSERT INTO tokens VALUES ('9', 'd', 'officer', ?, 't', NULL)",
        lambda who: f"x_{who}_y",
        False,
    ),
    "open request": ("INSERT INTO open_requests VALUES ('r', ?, NULL, NULL)", lambda who: who, True),
    "items of a request": (
        "INSERT INTO open_requests VALUES ('r', 'bob', ?, NULL)",
        lambda who: json.dumps(["a", who]),
        False,
    ),
    "who waits": ("INSERT INTO intake VALUES (9, ?, 'a', NULL, NULL)", lambda who: who, True),
    "item that waits": ("INSERT INTO intake VALUES (9, 'bob', ?, NULL, NULL)", lambda who: who, False),
    "answer": ("INSERT INTO answers VALUES ('k', 1.0, 'b', CAST(? AS BLOB))", lambda who: who, False),
    "step": ("INSERT INTO progress VALUES ('b', ?, 1, NULL, 1.0)", lambda who: who, False),
}


def _in_our_ledger(name: str) -> Iterator[Plant]:
    for spot, (statement, spell, field) in _LEDGER.items():
        plant = Plant(spot, "ledger", name, lambda old, who, s=statement, f=spell: _with_row(old, s, f(who)), field)
        yield plant
        if "events" not in statement:
            table = statement.split()[2]
            yield replace(
                plant,
                name=f"{spot}, deleted",
                make=lambda old, who, s=statement, f=spell, t=table: _with_row(old, s, f(who), f"DELETE FROM {t}"),
                as_field=False,
            )
        yield Plant(
            f"{spot}, in the log",
            "ledger, write-ahead log",
            f"{name}-wal",
            lambda _, who, s=statement, f=spell: _with_row(b"", s, f(who), log=True),
        )


def _with_row(content: bytes, statement: str, value: str, then: str = "", log: bool = False) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        if content:
            path.write_bytes(content)
        else:
            SqliteDatabase.open(Path(folder)).close()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA secure_delete = off")
            connection.execute("PRAGMA journal_mode = wal")
            connection.execute(statement, (value,))
            connection.commit()
            if then:
                connection.execute(then)
                connection.commit()
            if log:
                return Path(f"{path}-wal").read_bytes()
        return path.read_bytes()


# What a scan makes of it


@dataclass(frozen=True)
class Outcome:
    """Whether a planted id was found, and how often somebody else was."""

    found: bool
    false_alarms: int


def outcome(folder: Path, plant: Plant, who: str, held: Held) -> Outcome:
    """Plant an id; search for it, and for others who are not there: a part of it, while it is held, and a stranger."""
    others = [Target(other) for other in (who[:-1], who[1:], "somebody-else@example.org") if len(other.encode()) >= 8]
    with planted(folder, plant, who):
        found = not scan_folder(folder, [Target(who)], own_vocabulary(), held=held).clean
        held = replace(held, users=(*held.users, [who]))
        return Outcome(found, len(scan_folder(folder, others, own_vocabulary(), held=held).residues))


def workspace_with_ledger(path: Path) -> Held:
    """Learn a small shop that has forgotten someone and has a queue, and return the ids that it holds."""
    small_shop.learn_shop(path, small_shop.table())
    small_shop.forget_in(path, small_shop.member_of(path, 1))
    with closing(SqliteDatabase.open(path)) as database:
        database.cut_log()
    for log in path.glob("ledger.sqlite-*"):
        log.unlink()
    someone = small_shop.member_of(path, 2)
    with DiskStorage(path).writing() as session:
        session.amend(replace(session.documents(), pending=accepted_before(Request(someone))))
        held = held_ids(session.state().dataset, [someone])
        return replace(held, users=[*held.users])  # before anything is planted
