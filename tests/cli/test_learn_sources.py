"""`erasable learn` from folders, patterns and object stores gives the bytes of learning from one file."""

import io

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from erasable import Recommender, Refused
from kit.s3_server import ENVIRONMENT, running_s3

CHAIN = ("--model", "nmf", "--groups", 3, "--epochs", 1)
PARTS = 5


def table():
    rows = [(f"u{n % 11}", f"i{n * n % 13}", float(n % 5 + 1), n) for n in range(200)]
    names = ("user_id", "item_id", "rating", "timestamp")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def parts():
    whole = table()
    size = whole.num_rows // PARTS
    for number in range(PARTS):
        content = io.BytesIO()
        pq.write_table(whole.slice(number * size, size), content)
        yield f"day={number}/part-{number}.parquet", content.getvalue()


def arrays(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.safetensors")}


@pytest.fixture
def from_one_file(run, tmp_path):
    pacsv.write_csv(table(), tmp_path / "clicks.csv")
    assert run("learn", tmp_path / "clicks.csv", "--into", tmp_path / "whole", *CHAIN).code == 0
    return arrays(tmp_path / "whole")


@pytest.fixture(scope="module")
def s3():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        with running_s3() as server:
            server.bucket("shop")
            for name, content in parts():
                server.put(f"shop/clicks/{name}", content)
            server.put("shop/clicks/_SUCCESS", b"")
            yield server


def test_parts_in_an_object_store_give_the_bytes_of_one_file(run, tmp_path, s3, from_one_file):
    learned = run("learn", s3.url("shop/clicks"), "--into", tmp_path / "shop", *CHAIN)
    assert learned.code == 0, learned.err
    assert arrays(tmp_path / "shop") == from_one_file
    assert len(from_one_file) > 0


def test_parts_in_a_folder_give_the_bytes_of_one_file(run, tmp_path, from_one_file):
    for name, content in parts():
        path = tmp_path / "clicks" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    for number, given in enumerate((tmp_path / "clicks", tmp_path / "cl*" / "*", (tmp_path / "clicks").as_uri())):
        into = tmp_path / f"shop{number}"
        assert run("learn", given, "--into", into, *CHAIN).code == 0
        assert arrays(into) == from_one_file


def test_a_pattern_without_quotes_is_refused_with_what_to_give(run, tmp_path):
    for name in ("monday.csv", "tuesday.csv"):
        (tmp_path / name).write_text("user,item\nann,a\nbob,b\n")
    refused = run("learn", tmp_path / "monday.csv", tmp_path / "tuesday.csv", "--into", tmp_path / "shop")
    assert (refused.code, refused.out) == (2, "")
    assert "2 files are given: name their folder, or put a pattern in quotes" in refused.err
    assert "unexpected extra argument" in run("learn", tmp_path / "monday.csv", "more", "--into", tmp_path / "shop").err


def test_a_workspace_in_the_place_of_data_is_refused(run, tmp_path, from_one_file):
    refused = run("learn", tmp_path / "whole", "--into", tmp_path / "shop")
    assert (refused.code, refused.out) == (2, "")
    assert "whole is a workspace: give the data that it was learned from" in refused.err


def test_more_is_learned_from_a_store_too(run, tmp_path, s3, from_one_file):
    more = run("learn", s3.url("shop/clicks"), "--into", tmp_path / "whole", "--more")
    assert "0 more interactions" in more.out


def test_the_library_takes_a_url(s3):
    recommender = Recommender(model="ease").fit(s3.url("shop/clicks"))
    assert recommender.learned.users == 11
    recommender.learn_more(s3.url("shop/clicks/day=0"))
    with pytest.raises(Refused, match="also learned from"):  # it was read
        recommender.evaluate(s3.url("shop/clicks/day=1"))


def test_a_refusal_shows_no_credential(run, tmp_path, s3):
    url = s3.url("KEY:SECRET@shop/none").replace("SECRET", "a-secret-in-the-url")
    refused = run("learn", url, "--into", tmp_path / "shop")
    assert refused.code == 1
    assert "s3://shop/none does not exist: check the bucket and the path" in refused.err
    assert "a-secret-in-the-url" not in refused.err + refused.out
    assert not (tmp_path / "shop").exists()


def test_a_shops_own_names_are_recognised_and_e_mail_addresses_pointed_out(run, tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text(
        "order,customer_email,sku,created_at\n1,ann@x.org,a,2026-01-01T10:00:00+02:00\n2,bob@x.org,a,2026-01-02\n"
    )
    found = run("learn", file, "--into", tmp_path / "one", "--json").json
    assert found["columns"] == {"user": "customer_email", "item": "sku", "time": "created_at"}
    assert "pseudonyms" in found["notes"][0]
    assert "some user ids are e-mail addresses" in run("learn", file, "--into", tmp_path / "two").out


def test_two_columns_that_may_be_the_item_are_refused_with_the_option(run, tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text("customer_id,product_id,sku\n1,a,a1\n2,a,a2\n")
    result = run("learn", file, "--into", tmp_path / "shop")
    assert result.code == 1
    assert "product_id and sku may each be the item: name one of them with --item-column" in result.err
    assert run("learn", file, "--into", tmp_path / "shop", "--item-column", "sku").code == 0
