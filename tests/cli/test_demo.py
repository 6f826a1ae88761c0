"""`erasable demo`: the whole story, true in every number that it tells."""

import re
import tempfile


def test_the_story_is_told_in_four_parts_and_nothing_is_left_behind(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    assert re.findall(r"^(\d\. \w+)", result.out, re.MULTILINE) == ["1. Learn", "2. Recommend", "3. Forget", "4. Prove"]
    assert "2,000 users, 400 items" in result.out
    assert result.out.count("fits") >= 3
    assert "Users left: 1,999." in result.out
    assert "the model (ease) has weights for the 200 items that are nearest to it" in result.out
    assert "gives byte for byte the same (3 arrays compared)" in result.out
    assert "DIFFERENT" not in result.out
    hits = float(re.search(r"hit for ([\d.]+) % of the users", result.out)[1])
    assert hits > 40
    assert 0 < float(re.search(r"about ([\d.]+) % of the work of learning", result.out)[1]) < 100
    assert "Held about u1235: 20 purchases." in result.out
    assert list(tmp_path.iterdir()) == []
