"""Made-up requests to every route, right and wrong ones: no answer is a 5xx, and each is what OpenAPI says."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from erasable.requests import Request
from erasable.service.settings import DEFAULT_SETTINGS
from kit import erasure_service, service_process
from reporting import print_table, save

# Without: what is right by the schema and refused by a rule that OpenAPI can't tell, such as the scale of ratings.
LEFT_OUT = "positive_data_acceptance"
PHASES = "coverage,fuzzing,stateful"
_OPERATIONS = 18  # about so many times the cases of one operation come together, over all phases


def run(options: argparse.Namespace) -> None:
    """Have schemathesis make up requests until there were enough of them."""
    program = shutil.which("schemathesis", path=Path(sys.executable).parent)
    if program is None:
        sys.exit(f"fuzzing needs schemathesis: {sys.executable} -m pip install schemathesis")
    with tempfile.TemporaryDirectory() as folder:
        report = _fuzzed(Path(folder), program, options)
    cases = report["test_cases"]
    kinds = {failure["title"]: failure["count"] for failure in report["failures"]}
    print_table(("cases", "failures"), [[f"{cases['generated']:,}", str(cases["with_failures"])]])
    facts = {"cases": cases["generated"], "failures": kinds, "operations": report["operations"]["tested"]}
    settings = {"phases": PHASES, "left_out": LEFT_OUT, "seed": options.seed}
    result = {**facts, **settings, "schemathesis": report["schemathesis_version"]}
    print(f"written to {save('service-fuzz', result)}")
    if kinds or cases["generated"] < options.cases:
        sys.exit(f"broken: {kinds}" if kinds else "too few cases were made up")


def _fuzzed(folder: Path, program: str, options: argparse.Namespace) -> dict[str, Any]:
    shop = erasure_service.learn(folder / "shop")
    request_ids = _requests_in_several_states(shop)
    token, users = erasure_service.new_token(shop, "operator"), [f"u{number:04d}" for number in range(10, 60)]
    config = folder / "schemathesis.toml"
    config.write_text(_config(request_ids, users))
    with service_process.running(shop, DEFAULT_SETTINGS) as service:
        command = [program, "--config-file", str(config), "run", f"{service.url}/openapi.json"]
        command += ["--header", f"Authorization: Bearer {token}", "--phases", PHASES, "--exclude-checks", LEFT_OUT]
        command += ["--max-examples", str(options.cases // _OPERATIONS), "--seed", str(options.seed)]
        command += ["--no-color", "--report-json-path", str(folder / "report.json")]
        with (folder / "output.txt").open("w") as output:
            ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, check=False)
        if ended.returncode:
            print("".join(line[:200] + "\n" for line in (folder / "output.txt").read_text().splitlines()))
    return json.loads((folder / "report.json").read_text())


def _requests_in_several_states(shop: Path) -> list[str]:
    """File requests, so that there are ids to find: two are carried out, three wait."""
    erased = erasure_service.file_requests(shop, Request("u0001"), Request("u0002"))
    erasure_service.work_off(shop, clock=erasure_service.later)
    waiting = erasure_service.file_requests(shop, Request("u0003"), Request("u0004"), Request("u0005"))
    return [*erased, *waiting]


def _config(request_ids: list[str], users: list[str]) -> str:
    """Have half of all ids be real ones, and count a body that is too large as refused."""
    return f"""
[dictionaries]
request_ids = {{ values = {json.dumps(request_ids)} }}
users = {{ values = {json.dumps(users)} }}
[parameters]
"path.request_id" = {{ dictionary = "request_ids", probability = 0.5 }}
"path.user_id" = {{ dictionary = "users", probability = 0.5 }}
[generation.dictionaries]
string = {{ dictionary = "users", probability = 0.2 }}
[checks.negative_data_rejection]
expected-statuses = ["4xx"]
"""
