"""The certificates that 0.1 wrote, format 2: signed over the canonical JSON of what they say, which names the chain."""

from typing import Any

from erasable.errors import Refused
from erasable.proof.canonical import canonical

FORMAT = 2
FIELDS = {
    *("kind", "format", "request_id", "scope", "subject", "version", "times", "seconds", "policy", "settings", "seed"),
    *("threads", "environment", "software", "catalogue", "rating_scale", "filter", "data", "stages_rerun"),
    *("stages_total", "cost_ratio", "chain", "scan", "utility", "audit", "proves", "does_not_prove"),
    *("public_key", "signature"),
}
"""What 0.1 says in them."""


def signed_content(fields: dict[str, Any], content: bytes) -> bytes:
    """Return the bytes that the signature is about: all that was read, fields that are unknown here included."""
    if not _is_canonical(fields, content):
        raise Refused("it is not written as certificates are (canonical JSON): it was changed")
    return canonical({name: value for name, value in fields.items() if name != "signature"})


def _is_canonical(fields: dict[str, Any], content: bytes) -> bool:
    try:
        return canonical(fields) == content
    except (ValueError, RecursionError):  # such as half a letter, which can be read and not be written
        return False
