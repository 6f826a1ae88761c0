"""The site, the container and the wheel's contents: what `scripts/docs` and `scripts/wheel` rely on."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import erasable
from test_tutorials import ROOT, script

site = script("check_site")


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        "<link rel=stylesheet href='//fonts.example/css'>",
        '<img alt="" src="http://pictures.example/a.png">',
        "@import url(https://fonts.example/css);",
        'src: url("https://fonts.example/a.woff2")',
    ],
)
def test_what_a_page_loads_from_another_host_is_found(text):
    assert site.loaded_from_elsewhere(text)


@pytest.mark.parametrize(
    "text", ['<a href="https://example.org">', '<img src="a.png">', "url(data:image/png;base64,AA==)"]
)
def test_links_and_files_of_the_site_itself_are_not(text):
    assert not site.loaded_from_elsewhere(text)


def test_every_public_name_is_in_the_reference_of_the_library():
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"auto(?:class|function|exception):: erasable\.(\w+)$", text, re.MULTILINE))
    assert documented == set(erasable.__all__) - {"__version__"}


def test_the_reference_of_http_is_current():
    page = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    assert page == script("make_http_reference").reference(), "run scripts/reference"


def test_titles_of_decisions_carry_their_number():
    for page in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert page.read_text(encoding="utf-8").startswith(f"# {int(page.name[:4])}. "), page.name


@pytest.mark.parametrize("page", ["README.md"])
def test_pictures_of_the_readme_are_there(page):
    pictures = re.findall(r'<img src="([^"]+)"', (ROOT / page).read_text(encoding="utf-8"))
    assert len(pictures) >= 2
    assert all((ROOT / picture).exists() for picture in pictures)


@pytest.mark.parametrize("folder", ["README.md", "docs", "src"])
def test_files_that_pages_and_messages_name_are_there(folder):
    place = ROOT / folder
    files = [place] if place.is_file() else [*place.rglob("*.md"), *place.rglob("*.py")]
    files = [file for file in files if not {"_build", "decisions"} & set(file.parts)]
    named = [
        (file, name)
        for file in files
        for name in re.findall(r"(?<![\w/.])(?:docs|tests)/[\w./*-]*\w", file.read_text())
    ]
    assert named or folder == "README.md"
    assert [(file.name, name) for file, name in named if not any(ROOT.glob(name))] == []


class TestContainer:
    file = ROOT / "Containerfile"

    def instructions(self) -> list[tuple[str, str]]:
        text = self.file.read_text().replace("\\\n", " ")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]

    def last(self, name: str) -> str:
        return [rest for instruction, rest in self.instructions() if instruction == name][-1]

    def test_is_clean_by_hadolint(self):
        hadolint = Path(sys.executable).parent / "hadolint"
        if not hadolint.exists():
            pytest.skip("hadolint is not to be had for this processor")
        run = subprocess.run([hadolint, self.file], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout

    def test_the_service_runs_as_a_user_without_rights(self):
        assert self.last("USER") not in ("root", "0")
        names = [name for name, _ in self.instructions()]
        assert names.index("USER") > max(place for place, name in enumerate(names) if name in ("RUN", "COPY"))

    def test_health_is_asked_of_a_route_that_is_there(self):
        (path,) = re.findall(r"http://127\.0\.0\.1:8080(/\w+)", self.last("HEALTHCHECK"))
        assert path in script("make_http_reference").application().openapi()["paths"]

    def test_the_command_is_one_that_the_service_has(self):
        words = [*json.loads(self.last("ENTRYPOINT")), *json.loads(self.last("CMD"))]
        assert words[:2] == ["erasable", "serve"]
        run = subprocess.run([sys.executable, "-m", "erasable", "serve", "--help"], capture_output=True, text=True)
        assert all(word in run.stdout for word in words if word.startswith("--"))

    def test_the_workspace_lies_on_the_volume(self):
        (volume,) = json.loads(self.last("VOLUME"))
        assert json.loads(self.last("CMD"))[1].startswith(volume + "/")


def test_a_wheel_that_lacks_a_file_is_refused(tmp_path):
    wheel = tmp_path / "erasable.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("erasable/__init__.py", "")
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "wheel_contents.py", wheel], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "erasable/py.typed" in run.stderr
