"""How values and small parts stand on a certificate's page; whatever comes from outside is escaped here."""

import datetime
import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def section(title: str, *content: str) -> str:
    """Return a section with its heading."""
    return "\n".join(["<section>", f"<h2>{escape(title)}</h2>", "<div>", *content, "</div>", "</section>"])


def paragraph(text: str) -> str:
    """Return a paragraph; what stands between backticks is code."""
    return f"<p>{_prose(text)}</p>"


def sentences(texts: Iterable[str]) -> str:
    """Return sentences as a list, one below the other."""
    return "<ul>\n" + "\n".join(f"<li>{_prose(text)}</li>" for text in texts) + "\n</ul>"


def ordered_list(style: str, items: Iterable[str]) -> str:
    """Return an ordered list; without the role, a list that shows no numbers is none to some screen readers."""
    return f'<ol class="{style}" role="list">\n' + "\n".join(items) + "\n</ol>"


def code(text: str) -> str:
    """Return text that is to be read letter by letter; it may break anywhere."""
    return f"<code>{escape(text)}</code>"


def facts(pairs: Mapping[str, str], style: str = "facts") -> str:
    """Return names and what they stand for; the latter is markup already."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{markup}</dd></div>" for name, markup in pairs.items())
    return f'<dl class="{style}">' + "\n".join(rows) + "</dl>"


def table(caption: str, heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table of which each row's first cell names the row; its cells are markup already."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "\n".join(_row(row) for row in rows)
    head = f"<caption>{escape(caption)}</caption>\n<thead><tr>{top}</tr></thead>"
    return f"<table>{head}\n<tbody>\n{body}\n</tbody></table>"


def day(text: str) -> str:
    """Return a day of ISO 8601 as people read it; what is no day stands as it is.

    >>> day("2026-03-09")
    '<time datetime="2026-03-09">9 March 2026</time>'
    """
    try:
        date = datetime.date.fromisoformat(text)
    except ValueError:
        return escape(text)
    # Month names of strftime follow the locale, and this page must not.
    return f'<time datetime="{escape(text)}">{date.day} {_MONTHS[date.month - 1]} {date.year}</time>'


def setting(value: Any) -> str:  # noqa: ANN401 - settings are of many types
    """Return the value of a setting.

    >>> [setting(value) for value in (None, True, 20, 0.001, [1.0, 5.0], "a<b")]
    ['not given', 'yes', '20', '0.001', '1 to 5', 'a&lt;b']
    """
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple) and len(value) == 2:
        return " to ".join(setting(part) for part in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _row(cells: tuple[str, ...]) -> str:
    return f'<tr><th scope="row">{cells[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in cells[1:]) + "</tr>"


def _prose(text: str) -> str:
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(code(part) if place % 2 else escape(part) for place, part in enumerate(parts))
