"""Run a page's console and Python blocks in order, and compare what they print with what the page shows.

`console` blocks hold commands after `$ ` with their output below. A `python` block may be followed by a `text` block
with what it prints; one whose first line is `# NAME.py` is saved under that name instead of run. Each page runs in an
empty folder that holds only `examples`. `scripts/outputs` writes the outputs anew.
"""

import contextlib
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/tutorials/first-erasure.ipynb",
    *(f"docs/tutorials/{name}.md" for name in ("your-data", "the-service", "your-own-model", "reading-a-certificate")),
)
PORT = "8972"  # as tutorials write it; a run takes one that is free
NAMED = re.compile(r"# (\w+\.py)\n")
BLOCK = re.compile(r"^```(console|python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DONE = re.compile(r"<<<(\d+)>>>\n")
VARIES = (
    (r"\b[0-9a-f]{32,}\b", "ID"),
    (r"\b(under )?\d+(\.\d+)? ?(ms|s|seconds)\b", "TIME"),
    (r"\b\d+ passed", "N passed"),
    (r"\b\d+(\.\d+)? ?%", "SHARE"),
    (r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|\+00:00)?)?", "DATE"),
)


def alike(text: str) -> str:
    """Return a text without what differs from run to run: ids, times, shares of work, dates."""
    for pattern, name in VARIES:
        text = re.sub(pattern, name, text)
    return text.strip()


class Shell:
    """One bash for a whole page, so that variables and background jobs stay."""

    def __init__(self) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
        self._bash = subprocess.Popen(
            ["/bin/bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )

    def run(self, command: str) -> str:
        """Run a command and return what it prints; one that fails is an error."""
        assert self._bash.stdin is not None  # noqa: S101 - for types
        assert self._bash.stdout is not None  # noqa: S101
        self._bash.stdin.write(f'{command}\necho "<<<$?>>>"\n')
        self._bash.stdin.flush()
        printed = ""
        while not (done := DONE.search(printed)):
            line = self._bash.stdout.readline()
            if not line:
                raise RuntimeError(f"the shell ended in: {command}\n{printed}")
            printed += line
        if done[1] != "0":
            raise RuntimeError(f"{command} ended with {done[1]}:\n{printed[: done.start()]}")
        return printed[: done.start()]

    def close(self) -> None:
        """End background jobs and the shell."""
        with contextlib.suppress(RuntimeError):
            self.run('jobs=$(jobs -p); if [ -n "$jobs" ]; then kill $jobs; wait $jobs 2> /dev/null; fi; true')
        self._bash.communicate("exit\n")


def commands(block: str) -> Iterator[str]:
    """Yield the commands of a console block, with their further lines after a backslash."""
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command += "\n" + next(lines)
            yield command


def run_console(shell: Shell, block: str) -> str:
    parts = []
    for command in commands(block):
        printed = "\n".join(line.rstrip() for line in shell.run(command).strip("\n").splitlines())
        parts.append(f"$ {command}\n{printed}\n" if printed else f"$ {command}\n")
    return "".join(parts)


def free_port() -> str:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def with_port(text: str, old: str, new: str) -> str:
    """Return a page with another port, where it is one."""
    return re.sub(rf"(?<=127\.0\.0\.1:){old}\b|(?<=--port ){old}\b", new, text)


def run_page(text: str) -> str:
    """Run a page in the current folder and return it with the outputs of this run."""
    shell, names, printed = Shell(), {}, io.StringIO()
    try:

        def run(found: re.Match[str]) -> str:
            language, body = found[1], found[2]
            if language == "console":
                body = run_console(shell, body)
            elif language == "python" and (named := NAMED.match(body)):
                Path(named[1]).write_text(body, encoding="utf-8")
            elif language == "python":
                printed.seek(0)
                printed.truncate()
                with contextlib.redirect_stdout(printed):
                    exec(compile(body, "page", "exec"), names)  # noqa: S102 - the pages are ours
            elif printed.getvalue():  # a text block after Python that printed something
                body = printed.getvalue()
                printed.seek(0)
                printed.truncate()
            return f"```{language}\n{body}```"

        port = free_port()
        return with_port(BLOCK.sub(run, with_port(text, PORT, port)), port, PORT)
    finally:
        shell.close()


def run_notebook(text: str) -> str:
    """Run a notebook in the current folder and return it with the outputs of this run, and without times and counts."""
    notebook = nbformat.reads(text, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata["language_info"] = {"name": "python"}
    return nbformat.writes(notebook) + "\n"


def run_in_folder(page: str) -> tuple[str, str]:
    """Return a page as it is and as it is after its run, in a folder of its own."""
    text, here = (ROOT / page).read_text(encoding="utf-8"), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        os.chdir(folder)
        try:
            return text, run_notebook(text) if page.endswith(".ipynb") else run_page(text)
        finally:
            os.chdir(here)


def main() -> None:
    """Write the outputs of the pages anew where they differ by more than ids and times."""
    for page in sys.argv[1:] or PAGES:
        old, new = run_in_folder(page)
        if alike(old) != alike(new):
            (ROOT / page).write_text(new, encoding="utf-8")
            print(f"{page}: outputs written anew")


if __name__ == "__main__":
    main()
