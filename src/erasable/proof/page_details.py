"""The technical details of a certificate's page: what the erasure rests on, and the digests of the chain."""

from collections.abc import Mapping
from html import escape
from typing import Any

from erasable.proof.certificate import Certificate, CertifiedStage
from erasable.proof.page_markup import code, counted, facts, ordered_list, paragraph, setting

_POLICIES = {
    "fixed": "The groups, their order and the filter stay as they were decided while the erased data was there.",
    "independent": "A person's group follows from that person's own id alone, so nobody else has a part in it.",
    "regroup": "The groups, their order and the filter were decided anew without the erased data.",
}
_ABOUT = "Policy, settings, environment, and the digests of data and checkpoints"


def details(certificate: Certificate) -> str:
    """Return what a technician wants to know, folded."""
    return "\n".join(
        [
            "<details>",
            f'<summary><h2>Technical details</h2><span class="note">{_ABOUT}</span></summary>',
            _basis(certificate),
            '<div class="pair">',
            f"<div>{_settings('Settings', certificate.settings)}</div>",
            f"<div>{_settings('Numeric environment', certificate.environment)}",
            f"{_settings('Other software', certificate.software)}</div>",
            "</div>",
            "<h3>Digests</h3>",
            paragraph("Their salt is destroyed with the version, so that no guess can be tested against them."),
            _digests(certificate),
            "<h3>Checkpoints</h3>",
            ordered_list("chain", [_stage(certificate, stage) for stage in certificate.chain]),
            "<h3>Audit chain</h3>",
            paragraph("The last record before the one of this erasure, with its hash."),
            facts({f"Record {certificate.audit.number}": code(certificate.audit.hash)}),
            "</details>",
        ]
    )


def fate(stage: CertifiedStage) -> str:
    """Return what became of a checkpoint."""
    return "kept" if stage.kept else "made again"


def _basis(certificate: Certificate) -> str:
    catalogue, policy = certificate.catalogue, certificate.policy
    origin = "declared" if catalogue.declared else "those of the first learning"
    return "<h3>Basis</h3>\n" + facts(
        {
            "Policy": f"{escape(policy)}. {_POLICIES.get(policy, '')}",
            "Catalogue": f"{counted(catalogue.items, 'item', 'items')}, {origin}",
            "Rating scale": setting(certificate.rating_scale),
            "Filter": escape(certificate.filter),
            "Seed": escape(certificate.seed),
            "Threads": str(certificate.threads),
            "Workspace version": str(certificate.version),
            "Certificate format": str(certificate.format),
        }
    )


def _settings(title: str, values: Mapping[str, Any]) -> str:
    return f"<h3>{title}</h3>\n" + facts({name: setting(value) for name, value in values.items()})


def _digests(certificate: Certificate) -> str:
    return facts(
        {
            "Data before": code(certificate.data.before),
            "Data after": code(certificate.data.after),
            "Catalogue": code(certificate.catalogue.digest),
        }
    )


def _stage(certificate: Certificate, stage: CertifiedStage) -> str:
    digests = {"Began from": code(stage.parent), "Checkpoint": code(stage.digest), "Arrays": code(stage.result)}
    name = certificate.step_name(stage.position).capitalize()
    return f"<li><b>{name}</b>, {fate(stage)}{facts(digests)}</li>"
