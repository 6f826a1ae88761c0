"""Write docs/pictures/certificate.png, a picture of a certificate's page, from the .json file of a certificate."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from erasable.proof import certificate_page, read_certificate

PICTURE = Path(__file__).parent / "pictures" / "certificate.png"
SIZE = "1280,2330"
COLOURS = 64


def main() -> None:
    chromium = shutil.which("chromium")
    if len(sys.argv) != 2 or chromium is None:
        sys.exit("give the .json file of a certificate, and install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "certificate.html"
        page.write_bytes(certificate_page(read_certificate(Path(sys.argv[1]).read_bytes())))
        options = (
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--screenshot={PICTURE}",
            f"--window-size={SIZE}",
        )
        subprocess.run([chromium, *options, page.as_uri()], check=True, capture_output=True)  # noqa: S603
    with Image.open(PICTURE) as picture:
        picture.convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
