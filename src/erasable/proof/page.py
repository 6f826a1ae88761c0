"""The certificate of erasure as a page for people: one file that asks for nothing else, the same for the same paper."""

from html import escape

from erasable.proof.certificate import Certificate, CertifiedScan, CertifiedStage, CertifiedUtility
from erasable.proof.page_details import details, fate
from erasable.proof.page_markup import (
    code,
    counted,
    duration,
    facts,
    moment,
    ordered_list,
    paragraph,
    percentage,
    section,
    sentences,
    table,
)
from erasable.proof.page_style import STYLE

_METRICS = {"hr": "Hit rate", "ndcg": "NDCG", "recall": "Recall"}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""


def certificate_page(certificate: Certificate) -> bytes:
    """Return a certificate as a web page, in UTF-8, that needs no other file and no script."""
    # Its entries may stand in any order here; in the file there is only one.
    certificate = Certificate.model_validate_json(certificate.encoded())
    content = (
        _opening(certificate),
        _steps(certificate),
        _work(certificate),
        _search(certificate.scan),
        _utility(certificate.utility),
        _limits(certificate),
        _checking(certificate),
        details(certificate),
    )
    title = escape(f"{_title(certificate)} {certificate.request_id}")
    return _PAGE.format(title=title, style=STYLE, content="\n".join(filter(None, content))).encode()


def _title(certificate: Certificate) -> str:
    return certificate.kind.capitalize()


def _opening(certificate: Certificate) -> str:
    whole = certificate.scope == "all data of one person"
    was, it = ("was", "it") if whole else ("were", "them")
    again = f"every part of the model that had learned from {it} was trained again without {it}"
    model = again if certificate.stages_rerun else f"no part of the model that people share had learned from {it}"
    return (
        f"<h1>{escape(_title(certificate))}</h1>\n"
        f'<p class="lead">On {moment(certificate.times.erased)}, <strong>{escape(certificate.scope)}</strong> '
        f"{was} erased from a recommender, and {model}.</p>\n" + facts({"Request": code(certificate.request_id)})
    )


def _steps(certificate: Certificate) -> str:
    times = certificate.times
    searched = "Files searched" if certificate.scan else "Nothing to search: it has no files"
    steps = {
        "Request received": times.received,
        "Data erased": times.erased,
        searched: times.scanned,
        "Certificate issued": times.issued,
    }
    items = [f"<li><b>{name}</b> {moment(time)}</li>" for name, time in steps.items()]
    return section("When", ordered_list("steps", items))


def _work(certificate: Certificate) -> str:
    again = f"{certificate.stages_rerun:,} of {certificate.stages_total:,}"
    figures = {
        "Work, compared with retraining all at once": percentage(certificate.cost_ratio),
        "Stages trained again": again,
        "Time it took": duration(certificate.seconds),
    }
    return section(
        "What was done",
        paragraph(
            "The recommender learns from people in stages, and keeps a checkpoint of each: what it knew after it had "
            f"learned from a group of people{_about_rows(certificate)}. {_what_happened(certificate)}"
        ),
        ordered_list("groups", [_group(certificate, stage) for stage in certificate.chain]),
        facts(figures, "figures"),
    )


def _what_happened(certificate: Certificate) -> str:
    if all(stage.kept for stage in certificate.chain):
        return "The erased data had a part in none of them, so all were kept as they were."
    if not any(stage.kept for stage in certificate.chain):
        return "All of them were removed and made again without the erased data."
    return (
        "Every checkpoint that the erased data had a part in was removed and made again without the data. The others "
        "are from before the erasure and were kept as they were."
    )


def _about_rows(certificate: Certificate) -> str:
    if len(certificate.chain) == certificate.stages_total:
        return ""
    return ", and of the rows of each group: one for each person, worked out from that person's own data alone"


def _group(certificate: Certificate, stage: CertifiedStage) -> str:
    style = "kept" if stage.kept else "again"
    return f'<li class="{style}"><b>{certificate.step_name(stage.position).capitalize()}</b> {fate(stage)}</li>'


def _search(scan: CertifiedScan | None) -> str:
    if scan is None:
        return section(
            "What was searched",
            paragraph("The recommender was held in memory and has no files, so there was nothing to search."),
        )
    figures = {
        "Files": f"{scan.files:,}",
        "Size": f"{scan.megabytes:,} MB",
        "Traces found": str(scan.residues),
    }
    return section(
        "What was searched",
        paragraph(
            "After the erasure the files of the workspace, the folder that holds the recommender, were searched for "
            "what was erased, in the ways that are listed here. Nothing was found."
        ),
        facts(figures, "figures"),
        facts({f"{kind} files": f"{count:,}" for kind, count in scan.kinds.items()}, "kinds"),
        sentences(scan.searched),
    )


def _utility(utility: CertifiedUtility | None) -> str:
    if utility is None:
        return ""
    people = counted(utility.users, "person", "people")
    caption = (
        f"Measured on interactions that were kept out of training, of about {people} who are left, by the "
        f"protocol {utility.protocol}; higher is better. Rounded, so that no single person can be made out."
    )
    before = utility.before or {}
    names = [*utility.after, *(name for name in before if name not in utility.after)]
    rows = [(_metric(name), *_measures(before.get(name), utility.after.get(name))) for name in names]
    return section("How well it recommends", table(caption, ("Measure", "Before", "After", "Change"), rows))


def _metric(name: str) -> str:
    """Return a measure such as hr@10 in words."""
    kind, _, cutoff = name.partition("@")
    words = f"{_METRICS[kind]} in the first {cutoff}" if kind in _METRICS and cutoff else ""
    return f"{escape(words)} {code(name)}".strip()


def _measures(before: float | None, after: float | None) -> tuple[str, str, str]:
    return _measure(before), _measure(after), _change(before, after)


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    change = round(after - before, 4)
    return f"{change:+.4f}".replace("-", "−") if change else "none"


def _measure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f}"


def _limits(certificate: Certificate) -> str:
    proves = section("What this proves", paragraph(certificate.proves))
    does_not = section("What this does not prove", paragraph(certificate.does_not_prove))
    return f'<div class="pair">\n{proves}\n{does_not}\n</div>'


def _checking(certificate: Certificate) -> str:
    file = f"{certificate.request_id}.json"
    command = f"erasable verify DIR --certificate {file}"
    return section(
        "How to check it",
        paragraph(
            f"This page is a copy for reading. What is signed is the file `{file}` beside it. Whoever holds the "
            "recommender's workspace, here called `DIR`, checks it with"
        ),
        f"<pre>{escape(command)}</pre>",
        paragraph(
            "With the receipt of this request the person can show that the certificate is about them. Without it "
            "nobody can: the certificate names the person by a commitment only."
        ),
        f"<pre>{escape(command)} --receipt RECEIPT</pre>",
        facts(
            {
                "Commitment": code(certificate.subject),
                "Public key (Ed25519)": code(certificate.public_key),
                "Signature": code(certificate.signature),
            }
        ),
    )
