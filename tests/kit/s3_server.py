"""A local S3 server (moto's), started once for a test run, and its buckets as Arrow writes to them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from pyarrow import fs

START_SECONDS = 60
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "someone",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-environment",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}


@dataclass(frozen=True)
class S3Server:
    """A running server."""

    port: int

    @property
    def parameters(self) -> str:
        return f"endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def url(self, path: str) -> str:
        return f"s3://{path}?{self.parameters}"

    def bucket(self, name: str) -> None:
        self.writer().create_dir(name)

    def put(self, path: str, content: bytes) -> None:
        with self.writer().open_output_stream(path) as stream:
            stream.write(content)

    def writer(self):
        return fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )


@contextmanager
def running_s3() -> Iterator[S3Server]:
    """Start a server in a process of its own; skip where Arrow can't speak S3."""
    if not hasattr(fs, "S3FileSystem"):
        pytest.skip("this Arrow is built without S3")
    pytest.importorskip("moto", reason="needs moto, a local S3 server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield S3Server(port)
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, "the S3 server ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the S3 server did not start")
