"""Issuing certificates and receipts after an erasure and its scan: their sentences, and a certificate as a page."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field

from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.chain.settings import Config
from erasable.chain.tasks import OF_THE_CODE
from erasable.documents import format_in, newer, read_json, says_more
from erasable.errors import NewerDocument, Refused, Said
from erasable.evaluation.utility import Utility
from erasable.proof import coarse
from erasable.proof.certificate import (
    PART,
    WHOLE,
    Certificate,
    CertifiedCatalogue,
    CertifiedData,
    CertifiedDays,
    CertifiedRecord,
    CertifiedScan,
    CertifiedUtility,
    FrozenDocument,
    NamedCatalogue,
    Scope,
    Statement,
    canonical,
    commitment,
    data_digest,
    now,
    read_certificate,
    reference_commitment,
    salted_digest,
)
from erasable.proof.coarse import duration_in_words, share_in_words
from erasable.proof.log import Head
from erasable.proof.search_file import Erased, Sought
from erasable.wording import change, day, in_steps, listed, measure
from erasable.workspace.manifest import Stamp

if TYPE_CHECKING:
    from jinja2 import Template


_STATES = (
    "Whoever holds the signing key states that what was asked for was erased as this certificate says, and that "
    "whatever in the model had learned from it was removed, or made again without it."
)
_BY_CONSTRUCTION = (
    "The parameters of this version are, by construction, what training from scratch gives on the data that is left"
)
_REPEATS = (
    "repeats that training and compares every byte, in the numeric environment named here and as long as this version "
    "is the current one."
)
_SEARCHED = (
    "After the erasure the files of the workspace were searched for what was erased, in the ways that are listed, and "
    "nothing was found."
)
_OUTSIDE_A_WORKSPACE = (
    "It says nothing about copies outside this workspace: the input file, exports, backups, snapshots, and blocks that "
    "a disk has freed but not overwritten."
)
_OUTSIDE_MEMORY = (
    "It says nothing about copies outside this recommender: the input, exports, folders that it was saved into, and "
    "memory that was freed but not overwritten."
)
_SCALE = (
    "The rating scale was not declared: it was recognised from data, of which the erased data may have been a part."
)
_TUNED = (
    "The settings were chosen by trying them on data, of which the erased data may have been a part, and stay as they "
    "were."
)
_SIGNATURE = (
    "The signature shows that nothing was changed since, not that its holder is honest: the replay is what can be "
    "checked."
)
_FROZEN = "found in the data and frozen by version 0.1"
_LIST = (
    "so that an old file does not bring back what was erased. Nobody can tell whose it is without the key of the list"
)
_LIST_ON_DISK = (
    f"kept on a do-not-learn list outside the workspace, {_LIST}, which is kept in another place. `erasable learn DATA "
    "--into DIR --more --readmit ID` takes someone off it who wants to come back."
)
_LIST_IN_MEMORY = (
    f"kept on a do-not-learn list in memory, {_LIST}. `Recommender.learn_more` takes someone off it who wants to come "
    "back, if they are named with `readmit`."
)


def proves(dataset: Dataset, on_disk: bool) -> str:
    """Say what a certificate proves."""
    groups = ", in groups as the policy says," if _has_groups(dataset.config) else ""
    command = "`erasable verify`" if on_disk else "`Recommender.verify`"
    said = [_STATES, f"{_BY_CONSTRUCTION}{groups} with the settings named here and the seed that is held.", command]
    said.append(_REPEATS)
    return " ".join([*said, _SEARCHED] if on_disk else said)


def does_not_prove(dataset: Dataset, on_disk: bool) -> str:
    """Say what a certificate does not prove."""
    said = [_OUTSIDE_A_WORKSPACE if on_disk else _OUTSIDE_MEMORY]
    if dataset.config.policy != "regroup":
        said += _decided_before(dataset)
    if dataset.catalogue is not None and not dataset.catalogue.declared:
        said.append(
            f"The catalogue was not declared: its items were {_FROZEN}, and one stays there when whoever had it is "
            "erased."
        )
    if dataset.config.rating_scale is None:
        said.append(_SCALE)
    if dataset.config.own.chosen_on == "data":
        said.append(_TUNED)
    return " ".join([*said, _SIGNATURE])


def policy_means(dataset: Dataset) -> str:
    """Say what the policy means for groups and filter, if there are any."""
    decided = _decided(dataset)
    if dataset.config.policy == "regroup" and decided:
        return f"{listed(decided)} {_was(decided)} decided anew without the erased data.".capitalize()
    independent = ["A person's group follows from that person's own id and the seed alone."]
    said = [*(independent if dataset.config.policy == "independent" else []), *_decided_before(dataset)]
    return " ".join(said) or "There are no groups to train in turn and no filter, so nothing was decided about them."


def catalogue_origin(dataset: Dataset) -> str:
    """Say where the items come from."""
    if dataset.catalogue is None and dataset.features is not None:
        return "those with declared features, and what else people have: of this, what only the erased had is gone"
    if dataset.catalogue is None:
        return "those that people have: what only the erased had is gone with them"
    return "declared" if dataset.catalogue.declared else _FROZEN


def filter_state(dataset: Dataset) -> str:
    """Say whether there is a filter, and whether it was applied again."""
    if dataset.kept_items is None:
        return "none"
    return "applied anew" if dataset.config.policy == "regroup" else "frozen"


def about_list(scope: Scope, on_disk: bool) -> str:
    """Say what is kept on a do-not-learn list, why, and how to remove it."""
    kept = "A keyed digest of the person's id is" if scope == WHOLE else "A keyed digest of each interaction erased is"
    return f"{kept} {_LIST_ON_DISK if on_disk else _LIST_IN_MEMORY}"


def model_settings(config: Config) -> dict[str, Any]:
    """Return the settings of the model, without the seed, with which a guess could be tested."""
    without = {"seed", *(() if config.rows == "solved" else config.learner.settings.only_for_rows)}
    return {name: value for name, value in config.flat().items() if name not in without}


def _has_groups(config: Config) -> bool:
    return config.groups > 1


def _decided(dataset: Dataset) -> list[str]:
    groups = ["the groups", "their order"] if _has_groups(dataset.config) else []
    return [*groups, *(["the filter"] if dataset.kept_items is not None else [])]


def _decided_before(dataset: Dataset) -> list[str]:
    """Say what was decided while the person's data may have been there."""
    given = dataset.config.grouping == "given" and _has_groups(dataset.config)
    said = ["The groups and their order were given, and stay."] if given else []
    own_id = given or dataset.config.policy == "independent"
    decided = [part for part in _decided(dataset) if not (own_id and part != "the filter")]
    if decided:
        stay = "stays" if decided == ["the filter"] else "stay"
        was = _was(decided)
        said.append(
            f"{listed(decided).capitalize()} {was} decided before the erasure, when the erased data may have been "
            f"there, and {stay} as {'it was' if was == 'was' else 'they were'}."
        )
    return said


def _was(decided: list[str]) -> str:
    return "was" if len(decided) == 1 else "were"


_SOFTWARE = ("erasable", "pyarrow", "safetensors", "cryptography", "rfc8785")


@dataclass(frozen=True)
class Outcome:
    """The state after an erasure, and what is known about the erasure."""

    state: State
    environment: dict[str, str]
    stamp: Stamp
    audit: Head
    scan: CertifiedScan | None
    scanned: str
    utility: Utility | None
    issuer: str | None = None
    files: int | None = None
    """How many files were scanned, for the log; the number reveals nothing about a person."""


def issue_certificates(erased: Erased, outcome: Outcome, key: bytes) -> list[Certificate]:
    """Return a signed certificate for each person in an erasure."""
    common = _common_facts(erased, outcome)
    return [
        read_certificate(_statement(sought, erased, outcome.scanned, common).signed(key)) for sought in erased.people
    ]


def named_catalogue(dataset: Dataset, salt: str) -> NamedCatalogue:
    """Return the catalogue as named in certificates of all formats."""
    declared = dataset.catalogue is not None and dataset.catalogue.declared
    return NamedCatalogue(declared=declared, digest=salted_digest(salt, dataset.items.digest()))


def numeric_part(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that bytes depend on."""
    return {name: value for name, value in environment.items() if name not in OF_THE_CODE}


def _statement(sought: Sought, erased: Erased, scanned: str, common: dict[str, Any]) -> Statement:
    scope: Scope = WHOLE if sought.items is None else PART
    days = CertifiedDays(
        asked=_day(sought.received),
        erased=_day(erased.at),
        searched=_day(scanned) if common["scan"] else None,
        issued=_day(now()),
    )
    return Statement(
        request_id=sought.request_id,
        scope=scope,
        subject=commitment(sought.salt, sought.user, sought.items),
        reference=reference_commitment(sought.salt, sought.reference),
        days=days,
        do_not_learn=about_list(scope, common["scan"] is not None) if erased.suppression else None,
        **common,
    )


def _common_facts(erased: Erased, outcome: Outcome) -> dict[str, Any]:
    dataset, salt = outcome.state.dataset, outcome.stamp.salt
    on_disk = outcome.scan is not None
    return {
        "issuer": outcome.issuer,
        "version": outcome.stamp.version,
        "duration": coarse.NOT_SAID if erased.seconds_at_most is None else coarse.duration(erased.seconds_at_most),
        "cost": coarse.NOT_SAID if erased.cost_at_most is None else coarse.share(erased.cost_at_most),
        "policy": dataset.config.policy,
        "policy_means": policy_means(dataset),
        "settings": model_settings(dataset.config),
        "revision": dataset.config.revision,
        "threads": erased.threads,
        "environment": numeric_part(outcome.environment),
        "software": {"python": platform.python_version()} | {name: version(name) for name in _SOFTWARE},
        "catalogue": _catalogue(dataset, salt),
        "rating_scale": (dataset.scale.low, dataset.scale.high),
        "filter": filter_state(dataset),
        "data": CertifiedData(before=erased.data_before, after=data_digest(salt, outcome.state)),
        "scan": outcome.scan,
        "utility": _utility(erased, outcome.utility),
        "audit": CertifiedRecord(**outcome.audit._asdict()),
        "proves": proves(dataset, on_disk),
        "does_not_prove": does_not_prove(dataset, on_disk),
    }


def _catalogue(dataset: Dataset, salt: str) -> CertifiedCatalogue:
    named = named_catalogue(dataset, salt)
    items = coarse.count(len(dataset.items))
    return CertifiedCatalogue(**named.model_dump(), items=items, origin=catalogue_origin(dataset))


def _utility(erased: Erased, after: Utility | None) -> CertifiedUtility | None:
    if after is None:
        return None
    grain = coarse.grain_for(after.users)
    return CertifiedUtility(
        protocol=after.protocol,
        users=coarse.count(after.users),
        grain=grain,
        before=None if erased.utility_before is None else _rounded(erased.utility_before, grain),
        after=_rounded(after.values, grain),
    )


def _rounded(measures: Mapping[str, float], grain: float) -> dict[str, float]:
    return {name: coarse.rounded(value, grain) for name, value in measures.items()}


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(UTC).date().isoformat()


FORMAT = 2
"""Receipts of version 0.1 have no format number, which counts as 1."""
ABOUT = (
    "Keep this: with what stands in it, and only with that, it can be shown that the certificate is about you. What "
    "you asked for was erased, and the recommender keeps no copy of this receipt."
)


class Receipt(FrozenDocument):
    """Who asked for what, and the salt of the commitments in the certificate."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["receipt of erasure"] = "receipt of erasure"
    format: int = Field(1, ge=1, strict=True)
    request_id: str
    user_id: str = Field(repr=False)
    items: tuple[str, ...] | None = Field(None, repr=False)
    reference: str | None = Field(None, repr=False)
    """A case number, or other text typed in with the request."""
    salt: str = Field(pattern="^[0-9a-f]{64}$", repr=False)
    about: str = ABOUT

    @staticmethod
    def of(sought: Sought) -> "Receipt":
        """Return the receipt of a person who was erased."""
        return Receipt(
            format=FORMAT,
            request_id=sought.request_id,
            user_id=sought.user,
            items=sought.items,
            reference=sought.reference,
            salt=sought.salt,
        )

    def opens(self, certificate: Certificate) -> bool:
        """Whether the certificate is about this person and what they asked for.

        A receipt written from memory may lack the reference, but a wrong one does not fit.
        """
        same = self.request_id == certificate.request_id and self._names_reference(certificate)
        return same and commitment(self.salt, self.user_id, self.items) == certificate.subject

    def _names_reference(self, certificate: Certificate) -> bool:
        return self.reference is None or reference_commitment(self.salt, self.reference) == certificate.reference

    @property
    def newer(self) -> bool:
        """Whether it has fields that this version does not know."""
        return says_more(self)

    def encoded(self) -> bytes:
        """Return the receipt as canonical JSON."""
        return canonical(self.model_dump(mode="json"))

    def in_short(self) -> str:
        """Return the fields without defaults on one line, which can be read as a receipt too."""
        return canonical(self.model_dump(mode="json", exclude_defaults=True)).decode()


def read_receipt(content: bytes) -> Receipt:
    """Read a receipt."""
    try:
        fields = read_json(content)
        found = format_in(fields, unnamed=1) if isinstance(fields, dict) else None
        if found is not None and found > FORMAT:
            raise NewerDocument(f"it {newer(found, FORMAT)}")
        return Receipt.model_validate(fields)
    except ValueError:  # also those of pydantic
        made = Said("a file that forget made", "the file that forget --receipts made")
        raise Refused("it is not a receipt of erasure: give ", made) from None


STYLE = files("erasable.proof").joinpath("templates", "certificate.css").read_text(encoding="utf-8")


def certificate_page(certificate: Certificate) -> bytes:
    """Return a certificate of the newest format as a web page in UTF-8, without scripts or other files."""
    said = Statement.model_validate_json(certificate.content)
    return _template().render(said=said, whole=WHOLE, style=STYLE).encode()


@cache
def _template() -> "Template":
    """Return the template; Jinja is imported here, so that only commands that issue certificates wait for it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("erasable.proof"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {
        "change": change,
        "day": _in_words,
        "duration_in_words": duration_in_words,
        "in_steps": in_steps,
        "measure": measure,
        "setting": _setting,
        "share_in_words": share_in_words,
    }
    return templates.get_template("certificate.html")


def _in_words(text: str) -> str | None:
    """Return an ISO 8601 date in words, None if it is not a date."""
    try:
        return day(date.fromisoformat(text))
    except ValueError:
        return None


def _setting(value: Any) -> str:  # noqa: ANN401 - settings are of many types
    """Return the value of a setting in words.

    >>> [_setting(value) for value in (None, True, 20, 0.001, [1.0, 5.0], "a<b")]
    ['not given', 'yes', '20', '0.001', '1 to 5', 'a<b']
    """
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple) and len(value) == 2:
        return " to ".join(map(_setting, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
