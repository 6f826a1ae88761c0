"""The certificate as a web page in one file, always the same for the same certificate."""

import datetime
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from erasable.proof.certificate import WHOLE, Certificate, Statement
from erasable.proof.coarse import duration_in_words, share_in_words
from erasable.wording import change, day, in_steps, measure

if TYPE_CHECKING:
    from jinja2 import Template


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
        "day": _day,
        "duration_in_words": duration_in_words,
        "in_steps": in_steps,
        "measure": measure,
        "setting": _setting,
        "share_in_words": share_in_words,
    }
    return templates.get_template("certificate.html")


def _day(text: str) -> str | None:
    """Return an ISO 8601 date in words, None if it is not a date."""
    try:
        return day(datetime.date.fromisoformat(text))
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
