"""Object stores: real requests to a local S3 server, and messages that say what to do and hold no credential."""

import io
import socket

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from erasable.data import _object_stores, read_batches, read_interactions
from erasable.data._object_stores import store_of, without_credentials
from erasable.errors import DataRefused, ErasableError, WrongUse
from kit.s3_server import ENVIRONMENT, running_s3

PARTS = [{"user": ["a", "b"], "item": [f"x{part}", "y"], "rating": [1.0, part + 1.0]} for part in range(3)]


@pytest.fixture(scope="module")
def s3():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        with running_s3() as server:
            server.bucket("shop")
            for number, part in enumerate(PARTS):
                content = io.BytesIO()
                pq.write_table(pa.table(part), content)
                server.put(f"shop/clicks/month=0{number}/part.parquet", content.getvalue())
            server.put("shop/clicks/_SUCCESS", b"")
            server.put("shop/clicks.csv", b"user,item,rating\na,x,1\nb,x,2\n")
            server.put("shop/bad.csv", b"user,item,rating\na,x,1\nb,x,good\n")
            server.put("shop/broken.parquet", b"PAR1 and no more")
            server.put("shop/a b.csv", b"a,x,1\nb,x,2\n")
            yield server


def rows(read):
    found = read.interactions
    users, items = found.users.texts(), found.items.texts()
    columns = zip(found.user_index, found.item_index, found.rating.tolist(), strict=True)
    return [(users[user], items[item], rating) for user, item, rating in columns]


def test_a_folder_is_read_in_order_without_its_markers(s3):
    read = read_interactions(s3.url("shop/clicks"))
    assert rows(read) == [("a", "x0", 1), ("a", "x1", 1), ("a", "x2", 1), ("b", "y", 3)]
    assert read.rows == 6


@pytest.mark.parametrize(
    "path", ["shop/clicks/*/part.parquet", "shop/clicks/month=0*", "shop/cl*/month=0*", "shop/clicks/"]
)
def test_patterns_find_files_and_folders(s3, path):
    assert read_interactions(s3.url(path)).rows == 6


@pytest.mark.parametrize("path", ["shop/clicks.csv", "shop/a%20b.csv"])
def test_a_file_is_read(s3, path):
    assert rows(read_interactions(s3.url(path))) == [("a", "x", 1), ("b", "x", 2)]


def test_a_second_pass_reads_again(s3):
    batches = read_batches(s3.url("shop/clicks"))
    assert sum(map(len, batches)) == sum(map(len, batches)) == batches.facts.rows == 6


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("shop/none.csv", "s3://shop/none.csv does not exist: check the bucket and the path"),
        ("no-bucket/x.csv", "s3://no-bucket/x.csv does not exist: check the bucket and the path"),
        ("shop/none*.csv", "s3://shop/none*.csv holds no file to read"),
        ("shop/bad.csv", "s3://shop/bad.csv, line 3: 'good' is not a rating"),
        ("shop/broken.parquet", "s3://shop/broken.parquet is not a Parquet file, or is damaged"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(s3, path, said):
    with pytest.raises(DataRefused) as refused:
        read_interactions(s3.url(path))
    assert str(refused.value).startswith(said)
    assert str(s3.port) not in str(refused.value)


def silent():
    server = socket.create_server(("127.0.0.1", 0))
    server.listen(50)
    return server


def test_a_store_that_is_not_there_is_told_soon(monkeypatch):
    monkeypatch.setattr(_object_stores, "_REQUEST_SECONDS", 1.0)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with silent() as server:
        port = server.getsockname()[1]
        for endpoint in (f"127.0.0.1:{port}", "127.0.0.1:1"):
            with pytest.raises(DataRefused, match=r"s3://shop/x\.csv: the store can't be reached: check the network"):
                read_interactions(f"s3://shop/x.csv?endpoint_override={endpoint}&scheme=http")


SECRET = "wJalrXUtnFEMIK7MDENG"


@pytest.mark.parametrize(
    "url",
    [
        f"s3://KEY:{SECRET}@shop/none.csv?endpoint_override=127.0.0.1:1&scheme=http",
        f"s3://KEY:a/{SECRET}@shop/none.csv",
        f"s3://KEY:{SECRET}/x",
        f"s3://KEY:{SECRET}@shop/x?token={SECRET}",
        f"s3://shop/x?secret_key={SECRET}",
        f"s3://KEY:{SECRET}@",
        f"gs://a:{SECRET}@[/x",
        f"abfs://box:{SECRET}@account.dfs.core.windows.net:x/none.csv",
        f"http://me:{SECRET}@example.org/x.csv?sig={SECRET}",
    ],
)
def test_no_message_holds_a_credential(url, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ErasableError) as refused:
        read_interactions(url)
    error: BaseException | None = refused.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://shop/a/b.csv", "s3://shop/a/b.csv"),
        ("s3://shop/ann@x.org/b.csv?region=x", "s3://shop/ann@x.org/b.csv"),
        ("s3://KEY:SE/CR@ET@shop/b.csv", "s3://shop/b.csv"),
        ("s3://KEY:SECRET/b.csv", "s3://…"),
        ("abfs://box:SECRET@account.dfs.core.windows.net/b.csv", "abfs://box@account.dfs.core.windows.net/b.csv"),
    ],
)
def test_a_url_is_shown_without_credentials(url, shown):
    assert without_credentials(url) == shown


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
            "access is denied: .*AWS_ACCESS_KEY_ID",
        ),
        ("AWS Error SIGNATURE_DOES_NOT_MATCH during ListObjectsV2 operation", "access is denied"),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation", "does not exist: check the bucket"),
        ("AWS Error SLOW_DOWN during GetObject operation", "can't be reached"),
        ("AWS Error INTERNAL_FAILURE during GetObject operation", r"can't be read \(INTERNAL_FAILURE\)"),
    ],
)
def test_the_reasons_of_a_store_are_told_apart(monkeypatch, reason, said):
    class Failing:
        def get_file_info(self, _path):
            raise OSError(reason)

    monkeypatch.setattr(_object_stores, "_s3", lambda _url: (Failing(), "shop/x"))
    with pytest.raises(DataRefused, match=rf"s3://shop/x:? .*{said}"):
        read_interactions("s3://shop/x")


def test_an_arrow_without_the_file_system_says_so(monkeypatch):
    def missing(_uri):
        raise NotImplementedError("Arrow compiled without GCS support")

    monkeypatch.setattr(_object_stores, "fs", type("Without", (), {"FileSystem": type("F", (), {"from_uri": missing})}))
    with pytest.raises(WrongUse, match=r"gs://shop/x: the installed Arrow can't read gs://: install pyarrow"):
        store_of("gs://shop/x")


def test_an_account_of_azure_comes_from_the_url_or_the_environment(monkeypatch):
    if not hasattr(fs, "AzureFileSystem"):
        pytest.skip("this Arrow is built without Azure")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises(WrongUse, match="names no storage account: set AZURE_STORAGE_ACCOUNT"):
        store_of("az://box/x.csv")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    assert (
        store_of("az://box/a/x.csv")[1]
        == store_of("abfs://box@account.dfs.core.windows.net/a/x.csv")[1]
        == "box/a/x.csv"
    )


def test_google_gives_up_in_time():
    if not hasattr(fs, "GcsFileSystem"):
        pytest.skip("this Arrow is built without Google's store")
    url = "gs://anonymous@shop/x.csv?endpoint_override=127.0.0.1:1&scheme=http&retry_limit_seconds=1"
    with pytest.raises(DataRefused, match=r"gs://shop/x\.csv: the store can't be reached"):
        read_interactions(url)
