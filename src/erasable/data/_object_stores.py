"""Object stores by URL (S3, Google Cloud Storage, Azure), through Arrow; no message holds a credential."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from pyarrow import fs

from erasable.errors import DataRefused, ErasableError, WrongUse

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEMES = ("s3", "gs", "gcs", "az", "abfs", "abfss", "file")
_CONNECT_SECONDS = 10.0
_REQUEST_SECONDS = 10.0  # without a byte; each request is tried three times
_RETRY_SECONDS = 30
# The parameters of a URL that Arrow documents for S3, and whether each is a switch. Those for writing are ignored.
_S3_PARAMETERS = {
    "region": False,
    "scheme": False,
    "endpoint_override": False,
    "tls_ca_file_path": False,
    "anonymous": True,
    "force_virtual_addressing": True,
    "allow_delayed_open": True,
    "allow_bucket_creation": True,
    "allow_bucket_deletion": True,
}
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
}
_DENIED = re.compile(
    r"ACCESS_DENIED|FORBIDDEN|INVALID_ACCESS_KEY|SIGNATURE|UNRECOGNIZED_CLIENT|EXPIRED_TOKEN|INVALID_TOKEN"
    r"|HTTP status 40[13]|Permission.?denied|Unauthenticated|Unauthorized|Authorization|Authentication|Credential",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|curlCode|Timed? ?out|Unavailable|Could(n't| not) connect|Could(n't| not) resolve"
    r"|Fail to get a new connection|SLOW_DOWN|retry policy|DEADLINE_EXCEEDED",
    re.IGNORECASE,
)
_MISSING = re.compile(r"NO_SUCH_BUCKET|NO_SUCH_KEY|NOT.FOUND|does not exist", re.IGNORECASE)
_OF_STORES = (OSError, ImportError, NotImplementedError, ValueError, TypeError)
FileSystem = Any
"""Arrow's file systems; their annotations change from version to version."""


def is_url(text: str) -> bool:
    """Whether a text is a URL rather than a path."""
    return _URL.match(text) is not None


def without_credentials(url: str) -> str:
    """Return a URL as it may be shown: without user, password and parameters.

    >>> without_credentials("s3://KEY:SE/CRET@shop/clicks?endpoint_override=localhost:9000")
    's3://shop/clicks'
    """
    scheme, _, rest = url.partition("://")
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    first = place.partition("/")[0]
    if ":" in first or "@" in first:
        # A secret may hold a slash that was not escaped, so everything before the last @ goes.
        user, found, host = place.rpartition("@")
        container = f"{user.partition(':')[0]}@" if scheme.startswith("abfs") and "/" not in user else ""
        place = f"{container}{host}" if found else "…"
    return f"{scheme}://{place}"


def store_of(url: str) -> tuple[FileSystem, str]:
    """Return Arrow's file system for a URL, and the path in it."""
    scheme, shown = url.partition("://")[0].lower(), without_credentials(url)
    if scheme not in _SCHEMES:
        raise WrongUse(
            f"{shown}: {scheme}:// can't be read: give a path or one of {', '.join(f'{one}://' for one in _SCHEMES)}, "
            "or download the file first"
        )
    try:
        return _s3(url) if scheme == "s3" else fs.FileSystem.from_uri(_for_arrow(url))
    except _OF_STORES as error:
        refusal = _refusal(shown, error)
    # Outside, so that Arrow's error is not chained to ours: it repeats the URL, with what is secret in it.
    raise refusal


@contextmanager
def explained(shown: str) -> Iterator[None]:
    """Turn the errors of a store into ones that say what to do."""
    try:
        yield
    except _OF_STORES as error:
        raise _refusal(shown, error) from None


def is_of_the_store(error: BaseException) -> bool:
    """Whether an error came from the store, not from what a file holds."""
    text = str(error)
    return any(pattern.search(text) for pattern in (_UNREACHABLE, _DENIED, _MISSING)) or "AWS Error" in text


def _refusal(shown: str, error: Exception) -> ErasableError:
    text, scheme = str(error), shown.partition("://")[0]
    if isinstance(error, ImportError | NotImplementedError):
        return WrongUse(
            f"{shown}: the installed Arrow can't read {scheme}://: install pyarrow from PyPI or conda-forge, or copy "
            "the files to this machine first"
        )
    if not isinstance(error, OSError):
        return WrongUse(
            f"{shown} is no URL of an object store: write it as {scheme}://BUCKET/PATH, special characters as %XX"
        )
    kind = {"gcs": "gs", "abfs": "az", "abfss": "az"}.get(scheme, scheme)
    if _UNREACHABLE.search(text):
        return DataRefused(
            f"{shown}: the store can't be reached: check the network and the endpoint (endpoint_override in the URL)"
        )
    if _DENIED.search(text):
        return DataRefused(
            f"{shown}: access is denied: check the rights to list and read it, and the credentials in the environment "
            f"({_CREDENTIALS.get(kind, 'of the store')})"
        )
    if _MISSING.search(text):
        return DataRefused(f"{shown} does not exist: check the bucket and the path")
    code = re.search(r"AWS Error (\w+)", text)
    reason = f" ({code[1]})" if code else ""
    return DataRefused(f"{shown} can't be read{reason}: check the URL and its parameters, then try again")


def _s3(url: str) -> tuple[FileSystem, str]:
    parts = urlsplit(url)
    user, _, bucket = parts.netloc.rpartition("@")
    if not bucket or ":" in bucket:
        raise ValueError
    access_key, _, secret_key = (unquote(part) for part in user.partition(":"))
    given = _s3_parameters(parts.query, without_credentials(url))
    if access_key:
        given |= {"access_key": access_key, "secret_key": secret_key}
    if not given.keys() & {"region", "endpoint_override"} and not _endpoint_is_configured():
        given["region"] = fs.resolve_s3_region(bucket)
    store = fs.S3FileSystem(connect_timeout=_CONNECT_SECONDS, request_timeout=_REQUEST_SECONDS, **given)
    return store, f"{bucket}{unquote(parts.path)}".rstrip("/")


def _endpoint_is_configured() -> bool:
    return any(os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))


def _s3_parameters(query: str, shown: str) -> dict[str, Any]:
    given = dict(parse_qsl(query))
    unknown = sorted(given.keys() - _S3_PARAMETERS.keys())
    if unknown:
        raise WrongUse(
            f"{shown}: the URL's parameter {unknown[0]!r} is unknown: give one of {', '.join(_S3_PARAMETERS)}"
        )
    return {
        name: value.lower() in ("true", "1") if _S3_PARAMETERS[name] else value
        for name, value in given.items()
        if not name.startswith("allow_bucket_")
    }


def _for_arrow(url: str) -> str:
    """Return a URL as Arrow reads it: Google's store gives up in time, Azure's account comes from the environment."""
    parts = urlsplit(url)
    if parts.scheme in ("gs", "gcs"):
        query = {"retry_limit_seconds": str(_RETRY_SECONDS), **dict(parse_qsl(parts.query))}
        return urlunsplit(parts._replace(query=urlencode(query)))
    if parts.scheme == "az":
        parts = parts._replace(scheme="abfs")
    if not parts.scheme.startswith("abfs") or "@" in parts.netloc or "." in parts.netloc:
        return urlunsplit(parts)
    account = os.environ.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        raise WrongUse(
            f"{without_credentials(url)} names no storage account: set AZURE_STORAGE_ACCOUNT, or write "
            "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
        )
    return urlunsplit(parts._replace(netloc=f"{account}@{parts.netloc}"))
