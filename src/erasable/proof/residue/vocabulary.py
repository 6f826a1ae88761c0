"""The words of our own files and of file formats: whoever is called like one of them is not found in it.

Our own JSON files are known by their names, their field names by the settings and records that are written there. A
field of ours holds no id of a person, unless it is named like a user.
"""

import re
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from erasable.evaluation import PROTOCOLS
from erasable.grouping import grouping_names
from erasable.models import model_names
from erasable.requests.sqlite_format import SCHEMA_WORDS
from erasable.store import Manifest
from erasable.store.layout import (
    AUDIT,
    CONFIG,
    FOLDERS,
    KEY,
    LEDGER_FILES,
    LOCKS,
    MANIFEST,
    NEW_MANIFEST,
    PENDING,
    SEALED,
)
from erasable.training import numeric_environment
from erasable.training.settings import settings_classes


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


CERTIFICATE_FIELDS = words(
    "about accepted after algorithm asked at audit before bytes catalogue certificates chain clean cost cost_at_most "
    "cost_ratio data data_before days declared digest do_not_learn does_not_prove duration environment erasable erased "
    "file files filter format grain hash identical "
    "compared reason interactions issued issuer items kept key kind kinds megabytes number origin pages parent place "
    "policy policy_means "
    "position previous proves protocol public_key rating_scale received reference request_id rerun residues result "
    "salt scan "
    "scanned scope searched seconds seconds_at_most seed settings signature size software stages stages_rerun "
    "stages_total state steps "
    "adopted subject threads times trained "
    "utility utility_before version what certificate from_scratch"
)
"""The field names of certificates, of audit records, of pending requests and of what a checkpoint says of itself."""

FREE_FORM = words("environment environments software kinds files before after certificates pages utility_before")
"""Fields of ours that hold names of their own, none of a person: libraries, files, measures, request ids."""

FORMAT_WORDS = (
    "held-out do-not-learn block safetensors parquet "
    "__metadata__ data_offsets parquet-cpp-arrow ARROW:schema key_value sqlite_master sqlite_sequence SQLite format 3 "
    "signing-key kept-items recall@10 recall@20\nall data of one person\nsome interactions of one person\n"
    "certificate of erasure\nreceipt of erasure\n" + "0" * 64
)
LEDGER_WORDS = (
    "received accepted suppressed erasing verifying certifying erased rejected withdrawn on hold failed joined "
    "extended revealed terms batch_window alarm_day limit_day "
    "resumed released named application officer operator worker service scope reason batch requests retry_at "
    "stages_rerun stages_total rerun version seconds duration cost cost_ratio kept files_searched utility before after "
    "identical grain compared users interactions people token role lease command\ntoken created\ntoken revoked\n"
    "retry asked\nverification asked\nverification begun\nverification ended\nlearned more\nlearning failed\n"
    "adopted trained upgraded\nupgrade failed\ndeadlines set\nserver restarts\n"
    "forgetting learning scanning evaluating cohesion saving verification replaying\n"
)
"""The words of events, states, roles and steps in the ledger of the service."""
_OF_SETTINGS = ("format", "model", "name", "revision", "settings", "strategy")
_WORD = re.compile(r"[\w-]+")
_HASH = "[0-9a-f]{12}"
_OWN_JSON = re.compile(
    rf"manifest\.json(\.new)?|config(-{_HASH})?\.json|pending-{_HASH}\.json|audit[^/]*\.jsonl|certificates/[^/]+\.json"
    r"|sealed/[^/]+\.jsonl?"
)
_OWN_PAGE = re.compile(r"certificates/[^/]+\.html")
_NAMING_ISSUERS = re.compile(r"manifest\.json(\.new)?|certificates/[0-9a-f]{32}\.(json|html)")
_OWN_NAME = re.compile(
    rf"([0-9a-f]{{64}}|block-\d{{4,}}-{_HASH})(-{_HASH})?\.safetensors|[0-9a-f]{{32}}\.(json|html)|"
    rf"(config|catalogue|kept-items|audit|signing-key|pending|group-\d+|held-out)(-{_HASH})?\.(json|jsonl|parquet|txt)|"
    rf"(certificates|log)-\d{{4,}}-{_HASH}\.jsonl?|requests-{_HASH}\.sqlite"
)
_OWN_DATABASE = re.compile(rf"{SEALED}/requests-{_HASH}\.sqlite")
_OWN_NAMES = frozenset({MANIFEST, NEW_MANIFEST, *LOCKS, *FOLDERS, *LEDGER_FILES})
_PLACE_BESIDE = re.compile(r"\.\./[^/]+\.do-not-learn(/list\.json|\.key/key)")
_OWN_TENSOR = re.compile(r"(shared|rows)\.[a-z][a-z_]*")


@dataclass(frozen=True)
class Vocabulary:
    """The words that stand in every workspace, whoever is in it."""

    fields: frozenset[str]
    wording: str
    """What stands in our own files beside sentences, one text a line."""

    @staticmethod
    def of(sentences: Iterable[str], of_model: Iterable[str] = ()) -> "Vocabulary":
        """Return the vocabulary, with sentences that certificates hold besides, and the names of a model's settings."""
        settings = settings_classes()
        of_settings = {name for kind in settings.values() for name in kind.model_fields}
        fields = frozenset({*_fields(Manifest), *of_settings, *of_model, *_OF_SETTINGS, *CERTIFICATE_FIELDS})
        words = [
            *sorted(fields),
            *sorted({word for kind in settings.values() for word in _option_words(kind)} | {*settings}),
            *sorted({*model_names(), *grouping_names()}),
            *PROTOCOLS,
            *sorted(_OWN_NAMES),
            CONFIG,
            AUDIT,
            KEY,
            PENDING,
            FORMAT_WORDS,
            LEDGER_WORDS,
            *sorted(SCHEMA_WORDS),
            *numeric_environment().values(),
        ]
        return Vocabulary(fields, "\n".join([*words, *sentences]))

    def words(self) -> frozenset[str]:
        """Return the words of our own wording."""
        return frozenset(_WORD.findall(self.wording))

    def says(self, text: str) -> bool:
        """Whether a text stands in our own wording, not as a part of a longer word."""
        return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", self.wording) is not None


def is_own_json(name: str) -> bool:
    """Whether a path below a workspace is that of a JSON file of ours."""
    return _OWN_JSON.fullmatch(name) is not None


def is_own_page(name: str) -> bool:
    """Whether a path below a workspace is that of a certificate to look at."""
    return _OWN_PAGE.fullmatch(name) is not None


def names_issuers(name: str) -> bool:
    """Whether a path below a workspace is that of a paper of ours on which the name of an issuer stands."""
    return _NAMING_ISSUERS.fullmatch(name) is not None


def is_own_name(part: str) -> bool:
    """Whether a file or a folder bears a name that a workspace gives."""
    return part in _OWN_NAMES or _OWN_NAME.fullmatch(part) is not None


def is_place_beside(text: str) -> bool:
    """Whether a text names a file beside the workspace, as the manifest does: it says what the folder is called."""
    return _PLACE_BESIDE.fullmatch(text) is not None


def is_own_database(name: str) -> bool:
    """Whether a path below a workspace is that of the ledger, of a file beside it, or of its sealed requests."""
    return name in LEDGER_FILES or _OWN_DATABASE.fullmatch(name) is not None


def is_own_tensor(name: str) -> bool:
    """Whether a tensor bears a name that a checkpoint gives."""
    return _OWN_TENSOR.fullmatch(name) is not None


def _fields(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        for part in _parts(field.annotation):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _fields(part)


def _option_words(model: type[BaseModel]) -> set[str]:
    parts = (part for field in model.model_fields.values() for part in _parts(field.annotation))
    return {part for part in parts if isinstance(part, str)}


def _parts(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - a type, or a word of a literal
    yield annotation
    for part in typing.get_args(annotation):
        yield from _parts(part)
