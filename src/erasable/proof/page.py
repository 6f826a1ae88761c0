"""The certificate of erasure as a page for people: one file that asks for nothing else, the same for the same paper."""

from html import escape

from erasable.proof.certificate import Certificate
from erasable.proof.coarse import MORE
from erasable.proof.page_details import details
from erasable.proof.page_markup import code, day, facts, ordered_list, paragraph, section, sentences, table
from erasable.proof.page_style import STYLE
from erasable.proof.statement import WHOLE, CertifiedScan, CertifiedUtility, Statement

_METRICS = {"hr": "Hit rate", "ndcg": "NDCG", "recall": "Recall"}
_SHARES = {MORE: "50 % or more"}
_DURATIONS = {MORE: "1 day or more"}
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
    """Return a certificate of the newest format as a web page, in UTF-8, that needs no other file and no script."""
    said = Statement.model_validate_json(certificate.content)
    content = (
        _opening(said),
        _steps(said),
        _work(said),
        _search(said.scan),
        _utility(said.utility),
        _what_stays(said),
        _limits(said),
        _checking(said),
        details(said),
    )
    title = escape(f"{_title(said)} {said.request_id}")
    return _PAGE.format(title=title, style=STYLE, content="\n".join(filter(None, content))).encode()


def _title(said: Statement) -> str:
    return said.kind.capitalize()


def _opening(said: Statement) -> str:
    was, it = ("was", "it") if said.scope == WHOLE else ("were", "them")
    named = {"Issued by": escape(said.issuer)} if said.issuer else {}
    return (
        f"<h1>{escape(_title(said))}</h1>\n"
        f'<p class="lead">On {day(said.days.erased)}, <strong>{escape(said.scope)}</strong> {was} erased from a '
        f"recommender, and whatever in its model had learned from {it} was removed, or made again without {it}.</p>\n"
        + facts({"Request": code(said.request_id), **named})
    )


def _steps(said: Statement) -> str:
    days = said.days
    steps = {"Asked for": days.asked, "Erased": days.erased}
    steps |= {"Files searched": days.searched} if days.searched else {}
    steps |= {"Certificate issued": days.issued}
    items = [f"<li><b>{name}</b> {day(date)}</li>" for name, date in steps.items()]
    return section("When", ordered_list("steps", items))


def _work(said: Statement) -> str:
    figures = {
        "Work, compared with retraining all at once": escape(_SHARES.get(said.cost, said.cost)),
        "Time": escape(_DURATIONS.get(said.duration, said.duration)),
    }
    return section(
        "What was done",
        paragraph(
            "The erased data was removed, and with it every checkpoint that had learned from it; what of these is "
            "still needed was made again without it. How much that was would tell of the person, so it is not said "
            "here: the figures are the most that it takes for anyone in this recommender."
        ),
        facts(figures, "figures"),
    )


def _search(scan: CertifiedScan | None) -> str:
    if scan is None:
        return section(
            "What was searched",
            paragraph("The recommender was held in memory and has no files, so there was nothing to search."),
        )
    figures = {"Files": escape(scan.files), "Size": escape(scan.size), "Traces found": str(scan.residues)}
    return section(
        "What was searched",
        paragraph(
            "After the erasure the files of the workspace, the folder that holds the recommender, were searched for "
            "what was erased, in the ways that are listed here. Nothing was found."
        ),
        facts(figures, "figures"),
        facts({"Kinds of files": escape(", ".join(scan.kinds))}),
        sentences(scan.searched),
    )


def _utility(utility: CertifiedUtility | None) -> str:
    if utility is None:
        return ""
    caption = (
        f"Measured on interactions that were kept out of training, of people who are left ({utility.users}), by the "
        f"protocol {utility.protocol}; higher is better. Rounded to steps of {utility.grain:g}, so that no single "
        "person can be made out."
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


def _what_stays(said: Statement) -> str:
    return section("What is kept", paragraph(said.do_not_learn)) if said.do_not_learn else ""


def _limits(said: Statement) -> str:
    proves = section("What this proves", paragraph(said.proves))
    does_not = section("What this does not prove", paragraph(said.does_not_prove))
    return f'<div class="pair">\n{proves}\n{does_not}\n</div>'


def _checking(said: Statement) -> str:
    file = f"{said.request_id}.json"
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
                "Commitment to who asked": code(said.subject),
                "Commitment to what else the receipt says": code(said.reference),
                "Public key (Ed25519)": code(said.public_key),
                "Signature": code(said.signature),
            }
        ),
    )
