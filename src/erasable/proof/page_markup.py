"""How values and small parts stand on a certificate's page; whatever comes from outside is escaped here."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
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


def moment(text: str) -> str:
    """Return a time of ISO 8601 as people read it; what is no universal time stands as it is.

    >>> moment("2026-03-09T08:05:00+00:00")
    '<time datetime="2026-03-09T08:05:00+00:00">9 March 2026, 08:05:00&nbsp;UTC</time>'
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return escape(text)
    if time.utcoffset() != timedelta(0):
        return escape(text)
    # Month names of strftime follow the locale, and this page must not.
    readable = f"{time.day} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M:%S}&nbsp;UTC"
    return f'<time datetime="{escape(text)}">{readable}</time>'


def counted(count: int, one: str, several: str) -> str:
    """Return a number with what it counts.

    >>> counted(1, "file", "files"), counted(1200, "file", "files")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {one if count == 1 else several}"


def percentage(ratio: float) -> str:
    """Return a ratio in per cent.

    >>> [percentage(ratio) for ratio in (0, 0.0001, 0.6249, 1)]
    ['0.0 %', 'under 0.1 %', '62.5 %', '100.0 %']
    """
    return "under 0.1 %" if 0 < ratio < 0.0005 else f"{ratio:,.1%}".replace("%", " %")


def duration(seconds: float) -> str:
    """Return how long something took.

    >>> [duration(seconds) for seconds in (0.004, 12.345, 60, 3599.9, 7384)]
    ['0.004 seconds', '12.3 seconds', '1 min 0 s', '1 h 0 min 0 s', '2 h 3 min 4 s']
    """
    if round(seconds, 1) < 60:
        return f"{seconds:.3g} seconds"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


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
