"""Residues of every kind, by the kind of file: each function plants what a file may hold of a person in a folder."""

import base64
import gzip
import io
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy


def parquet(path: Path, table: dict, **options) -> None:
    pq.write_table(pa.table(table), path, compression="zstd", **options)


def tensors(path: Path, arrays: dict, metadata: dict | None = None) -> None:
    path.write_bytes(safetensors.numpy.save(arrays, metadata=metadata))


def database(path: Path, schema: str, rows: list, journal: str = "delete", delete: str | None = None) -> None:
    """Write a database; what is deleted stays in the file, since nothing is wiped."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA secure_delete = off")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f"CREATE TABLE held ({schema})")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO held VALUES ({marks})", rows)
        connection.commit()
        if delete is not None:
            connection.execute(f"DELETE FROM held WHERE {delete}")
            connection.commit()
        if journal == "wal":
            # Closing it would write the log back.
            log = Path(f"{path}-wal").read_bytes()
            main = path.read_bytes()
    if journal == "wal":
        Path(f"{path}-wal").write_bytes(log)
        path.write_bytes(main)


def archive(path: Path, name: str, content: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    path.write_bytes(packed.getvalue())


def table_of(who) -> str:
    lines = [f"{who.user},{item},{rating:g}" for item, rating in zip(who.items, who.ratings, strict=True)]
    return "\n".join(["user_id,item_id,rating", *lines]) + "\n"


def others(who) -> list[str]:
    return ["ann", who.user, "bob"]


IDS = {
    "parquet, text": lambda p, w: parquet(p / "f", {"user_id": others(w), "item_id": ["a", "b", "c"]}),
    "parquet, list": lambda p, w: parquet(p / "f", {"group": [1], "users": [others(w)]}),
    "parquet, struct": lambda p, w: parquet(p / "f", {"row": [{"customer": user, "n": 1} for user in others(w)]}),
    "parquet, bytes": lambda p, w: parquet(p / "f", {"user": [user.encode() for user in others(w)]}),
    "parquet, first column": lambda p, w: parquet(p / "f", {"f0": others(w), "f1": ["a", "b", "c"]}),
    "parquet, dictionary": lambda p, w: parquet(
        p / "f", {"user": pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array(others(w)))}
    ),
    "parquet, metadata": lambda p, w: pq.write_table(
        pa.table({"item": ["a"]}).replace_schema_metadata({"made for": w.user}), p / "f"
    ),
    "parquet, name of a column": lambda p, w: parquet(p / "f", {"item": ["a"], w.user: [5]}),
    "safetensors, metadata": lambda p, w: tensors(p / "f", {"x": np.zeros(2)}, {"for": json.dumps({"who": w.user})}),
    "safetensors, name": lambda p, w: tensors(p / "f", {f"rows.of.{w.user}"[8:]: np.zeros(2)}),
    "json, field": lambda p, w: (p / "f").write_text(json.dumps({"people": [{"user_id": w.user}]})),
    "json, key": lambda p, w: (p / "f").write_text(json.dumps({"kept": {"ann": 1, w.user: 2}})),
    "json, any text": lambda p, w: (p / "f").write_text(json.dumps([["ann", w.user]])),
    "json, in a text": lambda p, w: (p / "f").write_text(json.dumps({"log": json.dumps({"by": w.user})})),
    "json lines": lambda p, w: (p / "f").write_text(json.dumps({"by": "ann"}) + "\n" + json.dumps({"by": w.user})),
    "json lines, one cut off": lambda p, w: (p / "f").write_text(
        json.dumps({"by": "ann"}) + f'\n{{"by": "{w.user}", "i'
    ),
    "our manifest": lambda p, w: (p / "manifest.json").write_text(json.dumps({"format": 3, "note": w.user})),
    "our audit records": lambda p, w: (p / "audit-0123456789ab.jsonl").write_text(
        json.dumps({"at": "x", "user": w.user})
    ),
    "sqlite, row": lambda p, w: database(p / "f", "user_id TEXT, item_id TEXT", [(u, "a") for u in others(w)]),
    "sqlite, bytes": lambda p, w: database(p / "f", "user_id BLOB, n", [(u.encode(), 1) for u in others(w)]),
    "sqlite, deleted": lambda p, w: database(
        p / "f", "user_id TEXT, item_id TEXT", [(u, "a") for u in others(w)], delete=f"user_id = '{w.user}'"
    ),
    "sqlite, log": lambda p, w: database(p / "f", "user_id TEXT, item_id TEXT", [(u, "a") for u in others(w)], "wal"),
    "sqlite, journal": lambda p, w: database(
        p / "f", "user_id TEXT, item_id TEXT", [(u, "a") for u in others(w)], "persist", f"user_id = '{w.user}'"
    ),
    "table with a header": lambda p, w: (p / "f").write_text(f"item;user id\na;ann\nb;{w.user}\n"),
    "table without a header": lambda p, w: (p / "f").write_text(f"ann::5::1\n{w.user}::42::5\n"),
    "one id a line": lambda p, w: (p / "f").write_text("\n".join(others(w))),
    "log": lambda p, w: (p / "f").write_text(f"started\nlearned 3 users\nerased, user={w.user} at last, in 3 s\n"),
    "gzip": lambda p, w: (p / "f").write_bytes(gzip.compress(table_of(w).encode())),
    "zip": lambda p, w: archive(p / "f", "old/ratings.csv", table_of(w)),
    "zstd": lambda p, w: (p / "f").write_bytes(pa.compress(table_of(w).encode(), "zstd", asbytes=True)),
    "name of a file": lambda p, w: (p / f"{w.user}.npy").write_bytes(b""),
    "name of a folder": lambda p, w: (p / f"user={w.user}").mkdir(),
    "name in a zip": lambda p, w: archive(p / "f", f"{w.user}.txt", "nothing"),
    "link": lambda p, w: (p / "f").symlink_to(f"../elsewhere/{w.user}/x"),
}
LONG_IDS = {
    "text around it": lambda p, w: (p / "f").write_text(f"the person ({w.user}) asked for it"),
    "cell of any column": lambda p, w: parquet(
        p / "f", {"user_id": ["ann"], "note": [f"as {w.user} said"]}, write_statistics=False
    ),
    "parquet, not packed": lambda p, w: pq.write_table(
        pa.table({"user_id": ["ann"], "x": [w.user.encode("utf-16-le") + b"\x00\xff"]}), p / "f", compression="none"
    ),
    "our certificate": lambda p, w: (
        (p / "certificates").mkdir(),
        (p / "certificates" / "x.json").write_text(json.dumps({"scope": f"all data of {w.user}"})),
    ),
    "our certificate to look at": lambda p, w: (
        (p / "certificates").mkdir(),
        (p / "certificates" / "x.html").write_text(f"<p>all data of {w.user}</p>"),
    ),
    "any bytes": lambda p, w: (p / "f").write_bytes(b"\x00\x93NUMPY" + w.user.encode() + b"\x00\xff"),
    "base64": lambda p, w: (p / "f").write_text(json.dumps({"x": base64.b64encode(f"id={w.user};".encode()).decode()})),
    "safetensors, array": lambda p, w: tensors(p / "f", {"x": np.frombuffer(w.user.encode() + b"\0", np.uint8)}),
    "sqlite, any column": lambda p, w: database(p / "f", "item TEXT, note TEXT", [("a", f"as {w.user} said")]),
    "sqlite, deleted, any column": lambda p, w: database(
        p / "f", "item TEXT, note TEXT", [("a", f"as {w.user} said"), ("b", "")], delete="item = 'a'"
    ),
}
ROWS = {
    "parquet": lambda p, w: parquet(p / "f", {"item_id": w.items, "rating": w.ratings}),
    "parquet, lists": lambda p, w: parquet(p / "f", {"group": [3], "items": [w.items], "ratings": [w.ratings]}),
    "parquet, times": lambda p, w: parquet(p / "f", {"time": w.times}),
    "json, objects": lambda p, w: (p / "f").write_text(
        json.dumps([{"item": i, "stars": r} for i, r in zip(w.items, w.ratings, strict=True)])
    ),
    "json, lists": lambda p, w: (p / "f").write_text(json.dumps({"items": w.items, "ratings": w.ratings})),
    "json, pairs": lambda p, w: (p / "f").write_text(json.dumps(list(zip(w.items, w.ratings, strict=True)))),
    "json, item by item": lambda p, w: (p / "f").write_text(json.dumps(dict(zip(w.items, w.ratings, strict=True)))),
    "json, times": lambda p, w: (p / "f").write_text(json.dumps({"when": w.times})),
    "sqlite": lambda p, w: database(p / "f", "item TEXT, rating REAL", list(zip(w.items, w.ratings, strict=True))),
    "table": lambda p, w: (p / "f").write_text(
        "".join(f"{i},{r:g}\n" for i, r in zip(w.items, w.ratings, strict=True))
    ),
    "times a line": lambda p, w: (p / "f").write_text("".join(f"{time:.0f}\n" for time in w.times)),
    "safetensors": lambda p, w: tensors(p / "f", {"t": np.array(w.times)}),
    "any bytes": lambda p, w: (p / "f").write_bytes(b"\x93NUMPY\x00" + np.array(w.times, dtype="<i8").tobytes()),
}
VECTORS = {
    "safetensors": lambda p, w: tensors(p / "f", {"rows.user": np.stack([w.vector * 2, w.vector, w.vector * 3])}),
    "safetensors, float16": lambda p, w: tensors(p / "f", {"x": np.stack([w.vector * 2, w.vector]).astype(np.float16)}),
    "any bytes, float64": lambda p, w: (p / "f").write_bytes(b"\0\xff\0" + w.vector.astype(">f8").tobytes()),
    "any bytes, bfloat16": lambda p, w: (p / "f").write_bytes(
        b"\0\xff\0" + (w.vector.view("<u4") >> 16).astype("<u2").tobytes()
    ),
    "parquet, list": lambda p, w: parquet(p / "f", {"n": [1, 2], "x": [(w.vector * 2).tolist(), w.vector.tolist()]}),
    "parquet, columns": lambda p, w: parquet(p / "f", {f"d{n}": [1.0, x] for n, x in enumerate(w.vector.tolist())}),
    "parquet, bytes": lambda p, w: parquet(p / "f", {"user": ["a"], "x": [w.vector.tobytes()]}),
    "json": lambda p, w: (p / "f").write_text(json.dumps({"a": {"v": w.vector.tolist()}})),
    "json, many": lambda p, w: (p / "f").write_text(json.dumps([w.vector.tolist(), (w.vector * 2).tolist()])),
    "sqlite, bytes": lambda p, w: database(p / "f", "user TEXT, x BLOB", [("a", w.vector.tobytes())]),
    "sqlite, deleted": lambda p, w: database(
        p / "f", "user TEXT, x BLOB", [("a", w.vector.tobytes()), ("b", b"")], delete="user = 'a'"
    ),
    "table": lambda p, w: (p / "f").write_text(
        "".join(",".join(map(str, [*v])) + "\n" for v in (w.vector * 2, w.vector))
    ),
}
TEXTS = {
    "parquet": lambda p, w: parquet(p / "f", {"user": ["a"], "digest": [w.text]}),
    "safetensors": lambda p, w: tensors(p / "f", {"x": np.zeros(1)}, {"erasable": json.dumps({"parent": w.text})}),
    "json": lambda p, w: (p / "f").write_text(json.dumps({"digest": w.text})),
    "our manifest": lambda p, w: (p / "manifest.json").write_text(json.dumps({"chain": [{"fingerprint": w.text}]})),
    "sqlite": lambda p, w: database(p / "f", "user TEXT, x TEXT", [("a", w.text)]),
    "sqlite, bytes": lambda p, w: database(p / "f", "user TEXT, x BLOB", [("a", bytes.fromhex(w.text))]),
    "text": lambda p, w: (p / "f").write_text(f"wrote {w.text}.safetensors"),
    "any bytes": lambda p, w: (p / "f").write_bytes(b"\0\xff" + bytes.fromhex(w.text)),
    "name": lambda p, w: (p / f"{w.text}.safetensors").write_bytes(b""),
}
