"""The vocabulary of a workspace: our own words, fields and files, in which a scan finds nobody.

Our files are recognised by name, their fields by the classes that write them: manifest, certificates, records, search
file, settings, and the schema of the queue.
"""

import re
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from erasable.chain.dataset import Dataset
from erasable.chain.settings import settings_classes
from erasable.chain.tasks import numeric_environment
from erasable.data.item_features import SEPARATOR
from erasable.evaluation.protocols import PROTOCOLS
from erasable.grouping.registry import grouping_names
from erasable.models.registry import model_names
from erasable.proof.certificate import FIELDS_OF_0_1, CertifiedStep, Statement
from erasable.proof.issuing import STYLE
from erasable.proof.log import FACTS, RECORD_FIELDS
from erasable.proof.search_file import Search
from erasable.requests.request import STATES
from erasable.requests.schema import FREE_TEXT_COLUMNS, PEOPLE_TABLES, SCHEMA_WORDS
from erasable.requests.tokens import ROLES
from erasable.scan import Vocabulary
from erasable.workspace.declared_items import NUMBERS
from erasable.workspace.files import (
    AUDIT,
    CONFIG,
    FOLDERS,
    KEY,
    LOCKS,
    MANIFEST,
    NEW_MANIFEST,
    PENDING,
    QUEUE_FILES,
    SEALED,
)
from erasable.workspace.manifest import Manifest


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_NAMING_PEOPLE = words("user people personal found shown texts own_items suppression")
"""Fields of the search file that name people, or where something of them was found: these are searched."""

_OF_EARLIER_FORMATS = words("about algorithm bytes certificate clean from_scratch megabytes place reason scanned")
"""Fields that earlier releases wrote and that no class has any more."""

FREE_FORM = words("environment environments software kinds files before after certificates pages utility_before")
"""Fields whose keys are free, but never a person: libraries, files, metrics, request ids."""

FILE_WORDS = (
    "held-out do-not-learn block signing-key kept-items recall@10 recall@20\nall data of one person\n"
    "bucket histories user_id item_id held_out slot_number anchor_count trained_rows declared-items hidden_item\n"
    "some interactions of one person\n"
    "certificate of erasure\nreceipt of erasure\n" + "0" * 64
)
QUEUE_WORDS = (
    "accepted verifying joined extended revealed terms batch_window alarm_day limit_day "
    "resumed released named worker service scope reason batch requests retry_at "
    "stages_rerun stages_total rerun version seconds duration cost cost_ratio kept files_searched utility before after "
    "identical grain compared users interactions people token role lease command\ntoken created\ntoken revoked\n"
    "retry asked\nverification asked\nverification begun\nverification ended\nlearned more\nlearning failed\n"
    "adopted trained upgraded\nupgrade failed\ndeadlines set\nserver restarts\n"
    "forgetting learning scanning evaluating cohesion saving verification replaying\n"
)
"""The words of events and steps in the queue of the service; states and roles are named in the code."""
_STAGES = 100
"""How many stages have columns that are known by name; chains are shorter than that."""
_OF_SETTINGS = ("format", "model", "name", "revision", "settings", "strategy")
_HASH = "[0-9a-f]{12}"
_OWN_NAMES = sorted({MANIFEST, NEW_MANIFEST, *LOCKS, *FOLDERS, *QUEUE_FILES})
_NAMES = re.compile(
    "|".join(map(re.escape, _OWN_NAMES))
    + rf"|([0-9a-f]{{64}}|block-\d{{4,}}-{_HASH})(-{_HASH})?\.safetensors|[0-9a-f]{{32}}\.(json|html)"
    rf"|(config|catalogue|kept-items|declared-items|item-features|audit|signing-key|pending)(-{_HASH})?\.(json|jsonl|parquet|txt)"
    rf"|(bucket-\d+|items|slots|histories|group-\d+|held-out)(-{_HASH})?\.parquet"
    rf"|(certificates|log)-\d{{4,}}-{_HASH}\.jsonl?|requests-{_HASH}\.sqlite"
)
_DOCUMENTS = re.compile(
    rf"manifest\.json(\.new)?|config(-{_HASH})?\.json|pending-{_HASH}\.json|audit[^/]*\.jsonl|certificates/[^/]+\.json"
    r"|sealed/[^/]+\.jsonl?"
)
_PAGES = re.compile(r"certificates/[^/]+\.html")
_DECLARING = re.compile(r"manifest\.json(\.new)?|certificates/[0-9a-f]{32}\.(json|html)")
_DATABASES = re.compile("|".join(map(re.escape, QUEUE_FILES)) + rf"|{SEALED}/requests-{_HASH}\.sqlite")
_PLACES_BESIDE = re.compile(r"\.\./[^/]+\.do-not-learn(/list\.json|\.key/key)")
_TENSORS = re.compile(r"(shared|rows)\.[a-z][a-z_]*")
_METADATA = "erasable"
_ITEM_TABLES = re.compile(rf"(declared-items|item-features)(-{_HASH})?\.parquet")
_MADE_UP = {
    "number": re.compile("[0-9a-f]{8}"),
    "id": re.compile("[0-9a-f]{32}"),
    "digest": re.compile("[0-9a-f]{64}"),
    "time": re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"),
}
"""Values that the queue generates, by the last word of the column: token numbers, request ids, digests, times."""


def vocabulary_of(dataset: Dataset) -> Vocabulary:
    """Return the vocabulary of the workspace with this dataset, including the names of its model's settings."""
    weights = dataset.config.weights
    events = {} if weights is None else weights.events or {}
    return own_vocabulary({**dataset.config.learner.settings.model_dump(), **events})


def own_vocabulary(of_model: Iterable[str] = ()) -> Vocabulary:
    """Return the vocabulary that every workspace has, plus the names of a model's settings."""
    settings = settings_classes()
    of_settings = {name for kind in settings.values() for name in kind.model_fields}
    fields = frozenset({*_fields_of_documents(), *of_settings, *of_model, *_OF_SETTINGS})
    wording = [
        *sorted(fields),
        *sorted({word for kind in settings.values() for word in _option_words(kind)} | {*settings}),
        *sorted({*model_names(), *grouping_names()}),
        *PROTOCOLS,
        *_OWN_NAMES,
        CONFIG,
        AUDIT,
        KEY,
        PENDING,
        FILE_WORDS,
        QUEUE_WORDS,
        *STATES,
        *ROLES,
        *sorted(SCHEMA_WORDS),
        *(f"stage_no_{stage}" for stage in range(_STAGES)),
        *numeric_environment().values(),
    ]
    return Vocabulary(
        wording="\n".join(wording),
        fields=fields,
        free_form=FREE_FORM,
        names=_NAMES,
        documents=_DOCUMENTS,
        places=_PLACES_BESIDE,
        pages=_PAGES,
        style=STYLE,
        declaring=_DECLARING,
        databases=_DATABASES,
        schema=SCHEMA_WORDS,
        people_tables=PEOPLE_TABLES,
        free_text_columns=FREE_TEXT_COLUMNS,
        made_up=_MADE_UP,
        tensors=_TENSORS,
        metadata=_METADATA,
        item_tables=_ITEM_TABLES,
        item_separator=SEPARATOR,
        item_numbers=NUMBERS,
    )


def _fields_of_documents() -> Iterator[str]:
    """Yield the fields of manifest, certificates, records and search file, as the classes that write them name them."""
    for model in (Manifest, Statement, CertifiedStep):
        yield from _fields(model)
    yield from {*_fields(Search)} - _NAMING_PEOPLE
    yield from (*FIELDS_OF_0_1, *RECORD_FIELDS, *FACTS, *_OF_EARLIER_FORMATS)


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
