"""Torch models: their process, what reaches it and what does not, how it ends, and what is refused."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from erasable.data.ids import Ids
from erasable.data.interactions import RatingScale
from erasable.errors import Refused, WrongSetting
from erasable.fingerprint import of_arrays
from erasable.models import SASRec, Stage, TorchModel, TorchSettings, TwoTower
from erasable.models._torch_model import array_name
from erasable.models._torch_process import Code, TorchProcess
from erasable.models._torch_server import _pieces
from erasable.models.base import Effort
from erasable.models.registry import checked_model
from erasable.testing._suite import made_up, timed, train

MODEL = SASRec(factors=8, blocks=1, length=8, epochs=2, batch=8)
ROWS = timed(made_up(2, users=12, items=9), 2)
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "bring-a-torch-model.md"
_ELSEWHERE = """
import os
os.environ.update(OMP_NUM_THREADS="5", MKL_CBWR="COMPATIBLE", ATEN_CPU_CAPABILITY="default")
import torch
torch.set_num_threads(7)
torch.manual_seed(99)
torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(False)
torch.set_flush_denormal(True)
from erasable.fingerprint import of_arrays
from erasable.models import SASRec
from erasable.testing._suite import made_up, timed, train
rows = timed(made_up(2, users=12, items=9), 2)
found = train(SASRec(factors=8, blocks=1, length=8, epochs=2, batch=8), rows, epochs=2)
print(of_arrays({**found.shared, **found.rows}))
"""


class Inside(TorchModel):
    name, revision = "inside", 1

    def network(self, items):
        raise AssertionError("not called")


def processes_below(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in children.read_text().split()] if children.exists() else []


def wait_until(holds, seconds=30):
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    assert holds()


def test_what_a_program_does_with_torch_reaches_no_byte():
    found = train(MODEL, ROWS, epochs=2)
    there = subprocess.run([sys.executable, "-c", _ELSEWHERE], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == of_arrays({**found.shared, **found.rows})


def test_the_program_itself_never_imports_torch():
    code = "import sys; from erasable.testing._suite import made_up, train; from erasable.models import TwoTower; "
    code += "train(TwoTower(factors=4, hidden=4, epochs=1), made_up(1)); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_another_number_of_threads_is_another_setting():
    assert SASRec(torch_threads=2).settings.torch_threads == 2
    stage = Stage(ROWS, RatingScale(1, 5), 1, 0, 0)
    two = SASRec(factors=8, blocks=1, length=8, torch_threads=2)
    assert two.train(two.start(ROWS.items, 0), stage, Effort()).all_finite()


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_ends_with_the_one_that_started_it_in_the_middle_of_training(kill):
    code = "from erasable.testing._suite import made_up, train; from erasable.models import SASRec; "
    code += "train(SASRec(epochs=10_000), made_up(1, users=50, items=40), epochs=10_000)"
    training = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    wait_until(lambda: processes_below(training.pid), 60)
    [child] = processes_below(training.pid)
    time.sleep(3)
    training.send_signal(kill)
    training.wait(20)
    wait_until(lambda: not Path(f"/proc/{child}").exists())


def test_the_process_ends_with_its_parent_though_a_process_that_was_forked_holds_its_input_open():
    code = "import os, time; from erasable.models._torch_process import Code, TorchProcess; "
    code += "found = TorchProcess(Code('erasable', '')); forked = os.fork(); forked or time.sleep(60); "
    code += "print(found._process.pid, forked, flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child, forked = map(int, parent.stdout.readline().split())
    try:
        time.sleep(3)
        parent.kill()
        parent.wait(20)
        wait_until(lambda: not Path(f"/proc/{child}").exists())
        assert Path(f"/proc/{forked}").exists()
    finally:
        os.kill(forked, signal.SIGKILL)
        parent.stdout.close()


def test_a_process_that_is_killed_is_told_and_the_next_question_has_another():
    process = TorchProcess(Code("erasable", ""))
    os.kill(process._process.pid, signal.SIGKILL)
    with pytest.raises(Refused, match="the process of the torch model ended"):
        process.ask({"method": "start"}, {})
    assert not process.works
    assert train(MODEL, ROWS, epochs=1).all_finite()


def test_a_class_of_a_notebook_or_a_function_is_refused_with_the_reason():
    class Within(Inside):
        name = "within"

    with pytest.raises(WrongSetting, match="can't import it from there: put the class into a file"):
        Within()
    made = type("Typed", (Inside,), {"__module__": "__main__", "name": "typed"})
    with pytest.raises(WrongSetting, match="'typed' is written in a notebook, a script or a function"):
        made()


def test_settings_that_are_not_those_of_torch_models_are_refused():
    from erasable.models import Settings

    kind = type("Bare", (Inside,), {"settings_class": Settings, "name": "bare"})
    with pytest.raises(WrongSetting, match="derive from TorchSettings"):
        kind()


def test_an_error_of_the_model_says_where_and_the_process_goes_on(tmp_path, monkeypatch):
    (tmp_path / "broken_net.py").write_text(
        "import torch\nfrom erasable.models import TorchModel\n\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, items):\n        super().__init__()\n"
        "        self.items = torch.nn.Embedding(items, 4)\n        self.other = torch.nn.Embedding(items, 4)\n\n"
        "class Grows(TorchModel):\n    name, revision = 'grows', 1\n"
        "    def network(self, items):\n        return Net(items)\n\n"
        "class Misnamed(Grows):\n    name = 'misnamed'\n    item_tables = {'items.weight': 1, 'others.weight': 1}\n\n"
        "class Broken(Grows):\n    name = 'broken'\n    item_tables = {'items.weight': 1, 'other.weight': 1}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import broken_net

    with pytest.raises(ValueError, match=r"other\.weight grows with the items: name it in item_tables"):
        train(broken_net.Grows(), ROWS)
    with pytest.raises(ValueError, match=r"the network has no others\.weight with a row for each item"):
        train(broken_net.Misnamed(), ROWS)
    with pytest.raises(ValueError, match="'Net' object has no attribute 'loss'"):
        train(broken_net.Broken(), ROWS)
    assert train(MODEL, ROWS, epochs=1).all_finite()


_PLAIN_NET = """
import torch
from erasable.models import TorchModel

class Net(torch.nn.Module):
    def __init__(self, items):
        super().__init__()
        self.items = torch.nn.Embedding(items, 4)
    def loss(self, batch):
        return (self.items(batch.items) - 1).square().mean()
    def encode(self, history):
        return self.items(history).mean(0)
    def item_vectors(self):
        return self.items.weight

class Plain(TorchModel):
    name, revision = "plain", 1
    def network(self, items):
        return Net(items)
"""


def test_no_module_of_the_working_folder_is_run_that_the_program_itself_does_not_import(tmp_path):
    code, here = tmp_path / "code", tmp_path / "here"
    for folder in (code, here):
        folder.mkdir()
    (code / "plain_net.py").write_text(_PLAIN_NET)
    (code / "use.py").write_text(
        "from erasable.testing._suite import made_up, train\nfrom plain_net import Plain\n"
        "print(train(Plain(), made_up(1), epochs=1).all_finite())\n"
    )
    for name in ("json", "safetensors", "queue"):
        (here / f"{name}.py").write_text(f"open('{name} was run', 'w').close()\n")
    done = subprocess.run([sys.executable, code / "use.py"], cwd=here, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert not [*here.glob("* was run")]


def test_a_model_of_the_working_folder_is_found_where_the_program_finds_it(tmp_path):
    (tmp_path / "plain_net.py").write_text(_PLAIN_NET)
    code = "from erasable.testing._suite import made_up, train; from plain_net import Plain; "
    code += "print(train(Plain(), made_up(1), epochs=1).all_finite())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


_DRAWING = """
        drawn = DRAW
        return (self.items(batch.items) - drawn).square().mean()
"""


@pytest.mark.parametrize(
    "draw", ["random.random()", "float(np.random.rand())", "float(torch.rand(()))", "self.drawn"], ids=str
)
def test_whatever_a_loss_draws_is_the_same_in_every_training_and_replay(tmp_path, monkeypatch, draw):
    name = f"drawing_{re.sub('[^a-z]', '', draw)}"
    text = _PLAIN_NET.replace("\n        return (self.items(batch.items) - 1).square().mean()\n", _DRAWING)
    text = text.replace("DRAW", draw).replace("import torch\n", "import random\nimport numpy as np\nimport torch\n")
    text = text.replace("super().__init__()\n", "super().__init__()\n        self.drawn = random.random()\n")
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = importlib.import_module(name).Plain()
    found = {of_arrays(train(model, ROWS, epochs=1).shared) for _ in range(2)}
    assert len(found) == 1
    assert of_arrays(train(model, ROWS, epochs=1, seed=1).shared) not in found


def test_what_the_module_of_one_model_does_with_torch_reaches_no_other(tmp_path, monkeypatch):
    rude = "torch.nn.GELU.forward = lambda self, x: x\ntorch.backends.mkldnn.enabled = False\n"
    (tmp_path / "rude_net.py").write_text(_PLAIN_NET + rude)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])  # a Path there is overlooked, as Python does
    import rude_net

    before = train(MODEL, ROWS, epochs=1)
    assert train(rude_net.Plain(), ROWS, epochs=1).all_finite()
    assert of_arrays(train(MODEL, ROWS, epochs=1).shared) == of_arrays(before.shared)


def test_a_module_that_is_loaded_again_is_trained_as_it_is_now(tmp_path, monkeypatch):
    path = tmp_path / "changing_net.py"
    path.write_text(_PLAIN_NET)
    monkeypatch.syspath_prepend(str(tmp_path))
    import changing_net

    def trained():
        return of_arrays(train(changing_net.Plain(), ROWS, epochs=1).shared)

    first = trained()
    path.write_text(_PLAIN_NET.replace(".items(batch.items) - 1", ".items(batch.items) + 100"))
    assert trained() == first  # what was imported is what trains
    importlib.reload(changing_net)
    assert trained() != first
    path.write_text(_PLAIN_NET)
    importlib.reload(changing_net)
    assert trained() == first


def test_source_that_changed_between_import_and_training_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "edited_net.py"
    path.write_text(_PLAIN_NET)
    monkeypatch.syspath_prepend(str(tmp_path))
    import edited_net

    model = checked_model(edited_net.Plain)()
    path.write_text(_PLAIN_NET + "\n# changed\n")
    with pytest.raises(Refused, match="the source of the model 'plain' changed since it was imported: import it again"):
        train(model, ROWS, epochs=1)


def test_the_page_s_own_model_learns_forgets_and_verifies(tmp_path):
    module, use = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "gru.py").write_text(module)
    (tmp_path / "use.py").write_text(use)
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_pieces_cover_every_row_once_and_begin_with_the_row_before():
    starts = np.array([0, 1, 3, 10])
    found = _pieces(starts, 3).tolist()
    assert found == [[1, 1, 3], [6, 7, 10], [3, 4, 7]]  # row 3 alone teaches nothing, nor does the first person's
    assert _pieces(starts, 100).tolist() == [[1, 1, 3], [3, 3, 10]]


def test_a_sampled_softmax_estimates_the_whole_one():
    code = """
import json, torch
from erasable.models._sasrec_network import softmax_loss
torch.manual_seed(0)
outputs, items = torch.randn(6, 4), torch.randn(40, 4)
targets = torch.arange(6)
whole = torch.logsumexp(outputs @ items.T, dim=1) - (outputs * items[targets]).sum(1)
def total(sampled):  # of each row, the estimate of the sum over all items
    one = [torch.exp(softmax_loss(outputs[n : n + 1], items, targets[n : n + 1], sampled)) for n in range(6)]
    return torch.stack(one)
drawn = torch.stack([total(20) for _ in range(4000)]).mean(0)
print(json.dumps([(drawn / torch.exp(whole)).tolist(), float(softmax_loss(outputs, items, targets, 0) - whole.mean())]))
"""
    ratios, same = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert np.allclose(ratios, 1, atol=0.03)  # without the correction it is about a half
    assert abs(same) < 1e-5


def test_names_of_arrays_are_letters_only_and_tell_parameters_apart():
    shared = MODEL.start(Ids.of(["a", "b"]), 0)
    assert all(re.fullmatch("[a-z][a-z_]*", name) for name in shared)
    assert "blocks_zero_before_attention_weight" in shared
    assert array_name("Layers.10.w2") == "layers_one_zero_w_two"


def test_settings_of_every_torch_model_are_there():
    for model in (SASRec, TwoTower):
        assert {*TorchSettings.model_fields} <= {*model.settings_class.model_fields}
    with pytest.raises(WrongSetting, match="`factors` must be a multiple of `heads`"):
        SASRec(factors=9, heads=2)
