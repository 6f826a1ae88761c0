"""Write docs/pictures/demo.svg, a picture of `erasable demo` in a terminal."""

import re
import sys
from pathlib import Path

from rich.console import Console

from erasable.cli import demo, output

PICTURE = Path(__file__).parent / "pictures" / "demo.svg"


def main() -> None:
    console = Console(record=True, width=100, force_terminal=True, color_system="truecolor", highlight=False)
    output.out = console
    console.print("$ scripts/demo", style="bold green")
    demo.command(threads=2)
    svg = console.export_svg(title="erasable demo")
    # A picture must not fetch fonts from elsewhere; the reader's own monospace font serves.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
