"""Check that no page of the built site loads anything from another host: `check_site.py FOLDER`."""

import re
import sys
from pathlib import Path

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|track|object)\b[^>]*?\b(?:src|srcset|data)\s*=\s*["']?(?:https?:)?//[^"'\s>]*"""
    r"""|<link\b[^>]*?\bhref\s*=\s*["']?(?:https?:)?//[^"'\s>]*"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^"');\s]*"""
    r"""|url\(\s*["']?(?:https?:)?//[^"')\s]*""",
    re.IGNORECASE,
)


def loaded_from_elsewhere(text: str) -> list[str]:
    """Return what a page or a style sheet would load from another host; links that a reader follows do not count."""
    return LOADED.findall(text)


def main() -> None:
    """Look at every page and style sheet, and end with 1 if one of them loads anything from elsewhere."""
    folder = Path(sys.argv[1])
    files = [path for path in folder.rglob("*") if path.suffix in (".html", ".css", ".svg")]
    found = {path: loaded_from_elsewhere(path.read_text(encoding="utf-8")) for path in files}
    if not files or any(found.values()):
        sys.exit("\n".join(f"{path}: {what}" for path, what in found.items() if what) or f"no pages in {folder}")
    print(f"{len(files)} pages and style sheets load nothing from another host")


if __name__ == "__main__":
    main()
