"""What a notebook shows of a recommender: a small table of HTML."""

from collections.abc import Mapping
from html import escape


def facts_as_html(title: str, facts: Mapping[str, object]) -> str:
    """Return names and values as a table with a title; whatever they hold is shown as it is.

    >>> facts_as_html("a < b", {"users": 1200, "lives_in": "<b>"})
    '<table><caption>a &lt; b</caption><tr><th>users</th><td>1,200</td></tr><tr><th>lives in</th><td>&lt;b&gt;</td></tr></table>'
    """  # noqa: E501
    rows = (
        f"<tr><th>{_shown(name.replace('_', ' '))}</th><td>{_shown(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"


def _shown(value: object) -> str:
    return escape(f"{value:,}" if isinstance(value, int) else str(value))
