"""Messages name a remedy as a command has it; whoever calls the library reads it here as Python has it."""

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from erasable.errors import ErasableError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_OPTION = re.compile(r"(?<![\w'\"-])--[a-z][a-z-]*[a-z]")
# What a message says to whoever runs a command, hyphens in names apart, and to whoever calls a method, in this order.
_PHRASES = (
    (r"erasable forget ('[^']*'|\S+) --resume", "forget([])"),
    (r"forget with --resume", "finish with forget([])"),
    (r"erasable upgrade ('[^']*'|\S+)", "upgrade()"),
    (r"erasable learn DATA --into '?(.*[^'])'?$", r"Recommender().fit(DATA).save('\1')"),
    (r"the folder that erasable learn made", "a folder that save made"),
    (r"a file that erasable forget made", "a file that forget made"),
    (r"the file that forget --receipts made", "a file that forget made"),
    (r"\(learn and forget take (--\w+)\)", r"(\1)"),
    (r"--([a-z]+)_column as a number", r"{call}(…, \1=NUMBER), a number"),
    (r"leave out --([a-z]+)_column", r"leave out \1="),
    (r"--([a-z]+)_column and --risk_threshold", r"\1= and risk_threshold="),
    (r"--([a-z]+)_column", r"{call}(…, \1='NAME')"),
    (r"--on_bad_row skip", "{call}(…, on_bad_row='skip')"),
    (r"give --catalogue", "give {call}(…, catalogue=FILE)"),
    (r"--do_not_learn LIST --do_not_learn_key KEY", "{apart}(suppression=Suppression(Path(LIST), Path(KEY)))"),
    (r"--no_do_not_learn", "{apart}(without_do_not_learn=True)"),
    (r"--readable_by_group", "inputs=Inputs(readable_by_group=True)"),
    (r"give --test FILE", "give evaluate(TABLE)"),
    (r"--rating_scale LOW HIGH", "rating_scale=(LOW, HIGH)"),
    (r"--fallback popular", "unknown='skip' or 'popular'"),
    (r"--rerun", "rerun=True"),
    (r"--(\w+) (-?[\d.]*\d)(?!\w)", r"\1=\2"),
    (r"--(strategy|model|policy|grouping|rows) (?!and\b|or\b)([a-z]+(?:-[a-z]+)*)", r"\1='\2'"),
    (r"(?<![\w'\"-])--([a-z]\w+)", r"\1"),
)


def in_python(text: str, call: str = "fit") -> str:
    """Return a message in Python's words, as whoever called this method of `Recommender` needs them.

    >>> in_python("there is no column 'sku': name one of them with --item-column")
    "there is no column 'sku': name one of them with fit(…, item='NAME')"
    >>> in_python("nothing was held out: learn with --holdout 0.1, or give --test FILE", "evaluate")
    'nothing was held out: learn with holdout=0.1, or give evaluate(TABLE)'
    """
    text = _OPTION.sub(lambda found: "--" + found[0][2:].replace("-", "_"), text)
    apart = "outside=Outside" if call == "forget" else "inputs=Inputs"
    for pattern, phrase in _PHRASES:
        text = re.sub(pattern, phrase.replace("{call}", call).replace("{apart}", apart), text)
    return text


def speaking_python(method: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Have whatever a method is refused with said in Python's words."""

    @wraps(method)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return method(*args, **kwargs)
        except ErasableError as error:
            error.args = (in_python(str(error), method.__name__),)
            raise

    return call
