"""`erasable forget --resume`: what a killed command has begun is finished, and whoever looks is told of it."""

import errno
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from erasable.operations import DiskStorage
from erasable.requests import Request
from erasable.workspace import Workspace, files
from kit.asking import accepted_before, erase_only, submit


@pytest.fixture
def submitted(shop) -> Path:
    """A workspace in which a command was killed once it had submitted a request."""
    submit(DiskStorage(shop), Request("ann"))
    return shop


@pytest.fixture
def accepted(shop) -> Path:
    """A workspace in which a command of an earlier release was killed once it had accepted a request."""
    with Workspace.writing(shop) as workspace:
        workspace.amend(replace(workspace.documents(), pending=accepted_before(Request("ann"))))
    return shop


@pytest.fixture
def erased(shop) -> Path:
    """A workspace in which a command was killed once the person was gone, before the certificate was written."""
    erase_only(DiskStorage(shop), Request("ann"))
    return shop


@pytest.fixture(params=["submitted", "accepted", "erased"])
def interrupted(request) -> Path:
    return request.getfixturevalue(request.param)


def facts_of(run, shop: Path) -> tuple[int, ...]:
    found = run("status", shop, "--json").json
    return tuple(found[name] for name in ("users", "version", "pending", "erasures", "records"))


def test_status_tells_how_many_people_wait(run, interrupted, request):
    erased = "erased" in request.node.callspec.id
    assert facts_of(run, interrupted) == (7 if erased else 8, 2 if erased else 1, 1, 0, 1)
    assert "pending       1" in run("status", interrupted).out


def test_it_is_finished_without_naming_anybody(run, interrupted, tmp_path):
    result = run("forget", interrupted, "--resume", "--receipts", tmp_path / "receipts", "--json")
    assert (result.code, result.err) == (0, "")
    (certificate,) = map(Path, result.json["certificates"])
    assert certificate.exists()
    assert (result.json["finished"], result.json["left_out"]) == (1, 0)
    receipt = tmp_path / "receipts" / certificate.name
    assert json.loads(receipt.read_bytes())["user_id"] == "ann"
    assert receipt.stat().st_mode & 0o777 == 0o600
    assert facts_of(run, interrupted) == (7, 2, 0, 1, 2)
    assert run("verify", interrupted, "--certificate", certificate, "--receipt", receipt).code == 0
    assert list(interrupted.glob("pending*")) == []


def test_words_say_so(run, interrupted):
    lines = run("forget", interrupted, "--resume").out.splitlines()
    assert "finished for 1 person what was asked for before" in lines
    assert not any(line.startswith(("left out", "nothing")) for line in lines)


def test_whoever_asks_again_for_the_same_gets_the_one_certificate(run, interrupted):
    found = run("forget", interrupted, "--user", "ann", "--json").json
    assert (len(found["certificates"]), found["finished"]) == (1, 1)
    assert facts_of(run, interrupted) == (7, 2, 0, 1, 2)


def test_whoever_asks_for_someone_else_finishes_it_too(run, interrupted):
    found = run("forget", interrupted, "--user", "bob", "--json").json
    assert (len(found["certificates"]), found["finished"]) == (2, 1)
    assert [one["user_id"] for one in found["receipts"]] == ["ann", "bob"]
    users, _, pending, erasures, _ = facts_of(run, interrupted)
    assert (users, pending, erasures) == (6, 0, 2)
    assert run("verify", interrupted).code == 0


def test_a_request_that_is_refused_leaves_it_waiting(run, interrupted, content_of):
    """Else the certificate would be there, and the receipt shown to nobody."""
    before = content_of(interrupted)
    assert run("forget", interrupted, "--user", "zoe").code == 1
    assert content_of(interrupted) == before


def test_a_command_that_fails_takes_back_its_own_requests_alone(run, submitted, content_of, monkeypatch):
    def full(kind, path):
        if kind == "write" and path.suffix == ".safetensors":
            raise OSError(errno.ENOSPC, "No space left on device")

    before = content_of(submitted)
    with monkeypatch.context() as patch:
        patch.setattr(files, "before_change", full)
        assert run("forget", submitted, "--user", "bob").code == 1
    assert content_of(submitted) == before
    (receipt,) = run("forget", submitted, "--resume", "--json").json["receipts"]
    assert receipt["user_id"] == "ann"


def test_resume_may_name_more_people(run, interrupted):
    found = run("forget", interrupted, "--resume", "--user", "bob", "--json").json
    assert (len(found["certificates"]), found["finished"]) == (2, 1)


def test_a_verification_tells_of_it_and_leaves_it_waiting(run, interrupted):
    result = run("verify", interrupted, "--json")
    assert (result.code, result.json["identical"]) == (0, True)
    finish = f"erasable forget {interrupted} --resume"
    assert result.json["reason"].endswith(f"an erasure was interrupted: finish it with {finish}")
    assert facts_of(run, interrupted)[2] == 1
    run("forget", interrupted, "--resume")
    assert run("verify", interrupted, "--json").json["identical"] is True


def test_the_certificate_is_as_exact_as_if_nothing_had_happened(run, interrupted, learned, copied, tmp_path):
    undisturbed = copied(learned, tmp_path / "undisturbed")
    run("forget", undisturbed, "--user", "ann")
    run("forget", interrupted, "--resume")
    one, other = (
        json.loads(next(shop.glob("certificates/*.json")).read_bytes()) for shop in (undisturbed, interrupted)
    )
    same = ("scope", "version", "policy", "settings", "environment", "cost", "proves", "does_not_prove")
    assert {name: one[name] for name in same} == {name: other[name] for name in same}
    assert kept_of(undisturbed) == kept_of(interrupted)


def kept_of(shop: Path) -> list[bool]:
    """Return which steps the last record of the log says were kept."""
    (log,) = shop.glob("audit-*.jsonl")
    return [step["kept"] for step in json.loads(log.read_text().splitlines()[-1])["steps"]]


def test_with_nothing_begun_nothing_is_done(run, shop, content_of, tmp_path):
    before = content_of(shop)
    result = run("forget", shop, "--resume")
    assert (result.code, result.out, result.err) == (0, "nothing was left to finish\n", "")
    found = run("forget", shop, "--resume", "--receipts", tmp_path / "receipts", "--json").json
    assert (found["certificates"], found["finished"], found["stages_rerun"]) == ([], 0, 0)
    assert content_of(shop) == before
    assert list((tmp_path / "receipts").glob("*")) == []


def test_without_resume_someone_must_be_named(run, interrupted, content_of):
    before = content_of(interrupted)
    result = run("forget", interrupted)
    assert (result.code, result.out) == (2, "")
    assert "say who: give --user U" in result.err
    assert content_of(interrupted) == before


def test_who_is_left_out_is_told_even_if_someone_else_was_finished(run, erased):
    assert "left out 1 request" in run("forget", erased, "--user", "zoe", "--ignore-unknown").out


def test_items_without_a_user_are_wrong_use_here_too(run, shop):
    assert run("forget", shop, "--resume", "--item", "a").code == 2


def test_ctrl_c_after_the_erasure_says_how_to_finish_it(run, shop, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["erasable.operations.erase"], "search_for", stop)
        result = run("forget", shop, "--user", "ann")
    assert (result.code, result.out) == (130, "")
    assert "nothing is left half done" not in result.err
    assert f"erasable forget {shop} --resume" in result.err
    assert run("forget", shop, "--resume").code == 0
    assert facts_of(run, shop) == (7, 2, 0, 1, 2)


@pytest.mark.parametrize("interrupted", ["submitted", "accepted"], indirect=True)
def test_what_was_submitted_can_be_taken_back(run, interrupted):
    result = run("forget", interrupted, "--withdraw")
    assert (result.code, result.out) == (0, "took back what 1 person asked for; nothing was erased\n")
    assert run("forget", interrupted, "--withdraw", "--json").json == {"withdrawn": 0}
    assert facts_of(run, interrupted) == (8, 1, 0, 0, 1)
