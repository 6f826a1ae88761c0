"""`erasable upgrade`: with another BLAS kernel in a process of its own, and the words that it says."""

import platform

import pytest
from safetensors.numpy import load_file

from erasable.chain import numeric_environment
from kit import elsewhere
from kit.elsewhere import OTHER_KERNEL, run_with_other_kernel

NOT_HERE = 3
NOTHING = "nothing to upgrade: it was made in this numeric environment, and has the newest format\n"
two_kernels = pytest.mark.skipif(
    "openblas" not in numeric_environment()["blas"]
    or OTHER_KERNEL in numeric_environment()["blas"]
    or platform.machine() != "x86_64",
    reason="no second kernel of OpenBLAS",
)


def arrays_in(folder) -> dict[tuple[str, str], bytes]:
    """Return the bytes of each array by the name of its checkpoint and its own."""
    return {
        (path.stem.split("-")[0], name): array.tobytes()
        for path in folder.rglob("*.safetensors")
        for name, array in load_file(path).items()
    }


def changed_checkpoints(before: dict, after: dict) -> int:
    assert before.keys() == after.keys()
    return len({place for (place, name), content in before.items() if after[place, name] != content})


@pytest.mark.full
@two_kernels
@pytest.mark.parametrize(
    ("settings", "alike"),
    [
        (("--model", "nmf", "--groups", "3", "--epochs", "6", "--batch", "16"), False),
        (("--model", "als", "--factors", "8"), False),
        (("--model", "ease"), None),
    ],
)
def test_what_was_learned_and_forgotten_with_another_kernel_is_made_again_here(
    run, ratings_file, tmp_path, settings, alike
):
    """EASE often has the same bytes on so little data, and then they are adopted."""
    shop, receipts = tmp_path / "shop", tmp_path / "receipts"
    assert run_with_other_kernel("learn", ratings_file, "--into", shop, *settings).returncode == 0
    assert run_with_other_kernel("forget", shop, "--user", "ann", "--receipts", receipts).returncode == 0
    (certificate,) = (shop / "certificates").glob("*.json")
    documents = ("--certificate", certificate, "--receipt", receipts / certificate.name)
    assert run("verify", shop, *documents).code == NOT_HERE
    refused = run("forget", shop, "--user", "bob")
    assert (refused.code, f"erasable upgrade {shop}" in refused.err) == (1, True)
    before = arrays_in(shop)
    found = run("upgrade", shop, "--json").json
    changed = changed_checkpoints(before, arrays_in(shop))
    assert (found["trained"], found["kept"]) == (changed, 0)
    assert found["adopted"] + changed == len({place for place, _ in before})
    if alike is not None:
        assert (changed == 0) == alike
    assert run("verify", shop, *documents).code == 0
    assert run("forget", shop, "--user", "bob").code == 0
    assert run("verify", shop, *documents).code == 0
    assert run_with_other_kernel("verify", shop).returncode == NOT_HERE


@pytest.mark.full
@two_kernels
def test_the_bytes_are_those_of_learning_here(run, ratings_file, learned, facts, tmp_path):
    run_with_other_kernel("learn", ratings_file, "--into", tmp_path / "shop", *facts.settings)
    assert arrays_in(tmp_path / "shop") != arrays_in(learned)
    run("upgrade", tmp_path / "shop")
    assert arrays_in(tmp_path / "shop") == arrays_in(learned)


class TestWords:
    def test_say_what_differed_and_what_was_done(self, run, shop):
        elsewhere.moved(shop, numba="0.1")
        result = run("upgrade", shop)
        assert result.code == 0
        first, second = result.out.splitlines()
        assert first == f"numba is {numeric_environment()['numba']} here and was 0.1"
        said = "upgraded to version 2, format 5: 3 checkpoints with the same bytes here, 0 with new ones, 0 that were"
        assert second.startswith(said)

    def test_say_that_there_is_nothing_to_do(self, run, shop):
        assert run("upgrade", shop).out == NOTHING
        assert run("upgrade", shop, "--dry-run").out == NOTHING
        assert run("upgrade", shop, "--json").json["changed"] is False

    def test_of_a_dry_run_say_what_it_would_do(self, run, shop, content_of):
        elsewhere.moved(shop, numba="0.1")
        before = content_of(shop)
        said = run("upgrade", shop, "--dry-run").out
        assert said.startswith("numba is ")
        assert "an upgrade trains 3 of 3 checkpoints again here" in said
        found = run("upgrade", shop, "--dry-run", "--json").json
        assert (found["needed"], found["steps_replayed"], found["format"]) == (True, 3, 5)
        assert content_of(shop) == before
