"""The technical details of a certificate's page: what the erasure rests on, and the digests of the data."""

from collections.abc import Mapping
from html import escape
from typing import Any

from erasable.proof.page_markup import code, facts, paragraph, setting
from erasable.proof.statement import Statement

_ABOUT = "Policy, settings, environment, and the digests of the data"


def details(said: Statement) -> str:
    """Return what a technician wants to know, folded."""
    return "\n".join(
        [
            "<details>",
            f'<summary><h2>Technical details</h2><span class="note">{_ABOUT}</span></summary>',
            _basis(said),
            '<div class="pair">',
            f"<div>{_settings('Settings', {**said.settings, **_revision(said)})}</div>",
            f"<div>{_settings('Numeric environment', said.environment)}",
            f"{_settings('Other software', said.software)}</div>",
            "</div>",
            "<h3>Digests</h3>",
            paragraph("Their salt is destroyed with the version, so that no guess can be tested against them."),
            _digests(said),
            "<h3>Audit chain</h3>",
            paragraph("The last record before the one of this erasure, with its hash."),
            facts({f"Record {said.audit.number}": code(said.audit.hash)}),
            "</details>",
        ]
    )


def _basis(said: Statement) -> str:
    catalogue = said.catalogue
    return "<h3>Basis</h3>\n" + facts(
        {
            "Policy": f"{escape(said.policy)}. {escape(said.policy_means)}",
            "Catalogue": f"{escape(catalogue.items)} items, {escape(catalogue.origin)}",
            "Rating scale": setting(said.rating_scale),
            "Filter": escape(said.filter),
            "Threads": str(said.threads),
            "Workspace version": str(said.version),
            "Certificate format": str(said.format),
        }
    )


def _revision(said: Statement) -> dict[str, int]:
    """Return the revision of the model, where the certificate names it."""
    return {} if said.revision is None else {"revision": said.revision}


def _settings(title: str, values: Mapping[str, Any]) -> str:
    return f"<h3>{title}</h3>\n" + facts({name: setting(value) for name, value in values.items()})


def _digests(said: Statement) -> str:
    return facts(
        {
            "Data before": code(said.data.before),
            "Data after": code(said.data.after),
            "Catalogue": code(said.catalogue.digest),
        }
    )
