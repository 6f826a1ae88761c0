"""In any file that says who is there, exactly those are found who are: no part of an id, no id that holds another."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Held, Target, scan_folder
from kit.choosing import examples

ID = st.text("ab1-._@", min_size=1, max_size=11).filter(lambda text: text.strip("-._@") == text)
PEOPLE = st.lists(ID, min_size=1, max_size=6, unique=True)


def as_text(path: Path, people: list[str]) -> None:
    path.write_text("user_id,item\n" + "".join(f"{user},x\n" for user in people))


def as_json(path: Path, people: list[str]) -> None:
    path.write_text(json.dumps([{"user": user, "item": "x"} for user in people]))


def as_parquet(path: Path, people: list[str]) -> None:
    pq.write_table(pa.table({"item": ["x"] * len(people), "user": people}), path, compression="none")


def as_database(path: Path, people: list[str]) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE held (item TEXT, user TEXT)")
        connection.executemany("INSERT INTO held VALUES ('x', ?)", [(user,) for user in people])
        connection.commit()


@pytest.mark.parametrize(
    "write", [as_text, as_database, *(pytest.param(one, marks=pytest.mark.full) for one in (as_json, as_parquet))]
)
# Many drawn tables are no fit for the format: that is no fault, and how many is chance.
@settings(max_examples=examples(20, 60), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(people=PEOPLE, wanted=PEOPLE, data=st.data())
def test_exactly_those_who_are_there_are_found(tmp_path_factory, write, people, wanted, data):
    # Ids that begin or end like others, or hold them, are what could go wrong.
    near = [data.draw(ID) + wanted[0], wanted[0] + data.draw(ID)]
    there = list(dict.fromkeys([*people, *near]))
    folder = tmp_path_factory.mktemp("files")
    write(folder / "f", there)
    held = Held((there,))
    for user in wanted:
        assert scan_folder(folder, [Target(user)], own_vocabulary(), held=held).clean is (user not in there), (
            user,
            there,
        )
    together = scan_folder(folder, [Target(user) for user in wanted], own_vocabulary(), held=held)
    assert together.clean is set(wanted).isdisjoint(there)
