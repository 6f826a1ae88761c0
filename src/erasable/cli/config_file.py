"""Settings from a TOML or JSON file."""

import json
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from erasable.errors import WrongUse


def read_config(path: Path | None, known: Collection[str] | None = None) -> dict[str, Any]:
    """Read settings, all of them known ones if those are told; without a file there are none."""
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        settings = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError:
        raise WrongUse(f"{path}: can't be read: give --config a TOML or JSON file") from None
    except ValueError as error:
        raise WrongUse(f"{path}: neither TOML nor JSON ({error}): correct it") from None
    if not isinstance(settings, dict):
        raise WrongUse(f"{path}: holds no settings: write lines such as groups = 8")
    unknown = [name for name in settings if known is not None and name not in known]
    if known is not None and unknown:
        raise WrongUse(f"{path}: there is no setting {unknown[0]!r}: the settings are {', '.join(sorted(known))}")
    return settings
