"""Models by name: built in, registered by another package, or handed over; no file decides what is imported."""

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from erasable import extensions
from erasable.chain import Config
from erasable.chain.settings import settings_classes
from erasable.errors import WrongSetting
from erasable.models import ALS, DMF, EASE, NMF, ItemKNN, Popular, find_model, model_names, registry
from erasable.models._als import ALSSettings
from erasable.models.registry import every_model, is_ours, source_digest

FOREIGN = '''
from typing import ClassVar
from erasable.models import ALS

class Foreign(ALS):
    """Another package's model."""
    name: ClassVar[str] = "foreign"
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a module of another package, whose file can be changed."""
    (tmp_path / "foreign_models.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "foreign_models", raising=False)
    yield __import__("foreign_models")
    sys.modules.pop("foreign_models", None)


@pytest.fixture
def registered(monkeypatch):
    """Register a class as another package would."""

    def register(name: str, value: str) -> None:
        point = EntryPoint(name, value, registry.GROUP)
        monkeypatch.setattr(extensions, "entry_points", lambda group: [point] if group == registry.GROUP else [])

    return register


def imported(name: str, wanted: bool = True) -> ModuleType | None:
    """Import a module or package as a new process would, or only forget it."""
    for known in [known for known in sys.modules if known.split(".")[0] in (name, "foreign_models")]:
        del sys.modules[known]
    importlib.invalidate_caches()
    return importlib.import_module(name) if wanted else None


@pytest.mark.parametrize(
    ("name", "kind", "revision"),
    [
        *(("nmf", NMF, 1), ("dmf", DMF, 1), ("ease", EASE, 1), ("als", ALS, 2)),
        *(("item-knn", ItemKNN, 1), ("popular", Popular, 1)),
    ],
)
def test_every_model_has_its_name(name, kind, revision):
    assert find_model(name) is kind
    assert (kind.name, kind.revision, is_ours(kind())) == (name, revision, True)
    assert set(kind.uses) == {"item-knn": {"numba"}, "popular": set()}.get(name, {"blas", "numba"})


def test_a_name_that_nobody_registers_is_refused_with_what_to_do():
    known = "als, ease, nmf, dmf, item-knn, popular, sasrec, two-tower"
    with pytest.raises(WrongSetting, match=f"no model 'os': choose one of {known}, or install the package"):
        find_model("os")


def test_a_registered_model_is_found_by_its_name(module, registered):
    registered("foreign", "foreign_models:Foreign")
    assert model_names() == ("als", "ease", "nmf", "dmf", "item-knn", "popular", "sasrec", "two-tower", "foreign")
    assert find_model("foreign") is module.Foreign
    assert not is_ours(module.Foreign())


def test_what_is_built_in_is_not_replaced(module, registered):
    registered("als", "foreign_models:Foreign")
    assert find_model("als") is ALS


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("other", "foreign_models:Foreign", "the model 'foreign' is registered as 'other'"),
        ("foreign", "json:dumps", "is not a model: give a class that derives from erasable.models.Model"),
    ],
)
def test_what_is_no_model_or_has_another_name_is_refused(module, registered, name, value, said):
    registered(name, value)
    with pytest.raises(WrongSetting, match=said):
        find_model(name)


def test_a_package_that_can_not_be_loaded_harms_no_other_model(registered):
    registered("gone", "no_such_module:Model")
    found, faults = every_model()
    assert set(found) == {"als", "ease", "nmf", "dmf", "item-knn", "popular", "sasrec", "two-tower"}
    assert "gone" not in settings_classes(found)
    assert len(faults) == 1
    with pytest.raises(WrongSetting, match=r"'gone' can't be loaded \(ModuleNotFound.*: fix or remove the package"):
        find_model("gone")


def test_a_setting_that_every_recommender_has_is_refused_in_a_model(module):
    class Own(ALSSettings):
        """Settings with a name that is taken."""

        seed: int = 0

    module.Foreign.settings_class = Own
    with pytest.raises(WrongSetting, match="'foreign' has a setting `seed`, which recommenders or strategies have"):
        Config(model=module.Foreign())


def test_changed_code_of_another_package_has_another_digest(module, tmp_path):
    before = source_digest(module.Foreign())
    assert len(before) == 64
    assert source_digest(module.Foreign()) == before
    (tmp_path / "foreign_models.py").write_text(FOREIGN + "# changed\n")
    assert source_digest(importlib.reload(module).Foreign()) != before


def test_a_file_that_is_edited_does_not_change_what_the_running_process_has_imported(module, tmp_path):
    """The digest is taken when the class is first checked."""
    learner = Config(model=module.Foreign(factors=2)).learner
    (tmp_path / "foreign_models.py").write_text(FOREIGN + "# changed\n")
    edited = source_digest(importlib.reload(module).Foreign())
    assert source_digest(learner) == source_digest(type(learner)(factors=3)) != edited
    (tmp_path / "foreign_models.py").write_text(FOREIGN)
    assert source_digest(importlib.reload(module).Foreign()) == source_digest(learner)


def test_all_files_of_a_package_count(tmp_path, monkeypatch):
    package = tmp_path / "foreign_package"
    package.mkdir()
    (package / "__init__.py").write_text("from foreign_package.model import Foreign\n")
    (package / "model.py").write_text(FOREIGN)
    (package / "kernel.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    before = source_digest(imported("foreign_package").Foreign())
    (package / "kernel.py").write_text("FACTOR = 2\n")
    assert source_digest(imported("foreign_package").Foreign()) != before


def test_a_package_that_is_installed_to_be_edited_is_known_by_its_own_files(module, tmp_path, monkeypatch):
    """Its distribution may list a file that finds it, which never changes."""
    folder = tmp_path / "foreign-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[erasable.models]\nforeign = foreign_models:Foreign\n")
    (folder / "RECORD").write_text("__editable___foreign_finder.py,,\n")
    (tmp_path / "__editable___foreign_finder.py").write_text("")
    assert "foreign" in model_names()
    before = source_digest(module.Foreign())
    (tmp_path / "foreign_models.py").write_text(FOREIGN + "# changed\n")
    assert source_digest(importlib.reload(module).Foreign()) != before


def test_ours_are_guarded_by_their_revision_alone():
    assert source_digest(ALS()) == ""


def test_a_model_that_was_typed_in_has_no_digest():
    typed = ModuleType("typed_in")
    exec(FOREIGN, vars(typed))
    assert source_digest(typed.Foreign()) == ""


def test_what_a_single_file_imports_beside_it_counts_and_nothing_else(module, tmp_path):
    (tmp_path / "foreign_models.py").write_text(f"import foreign_help\n{FOREIGN}")
    (tmp_path / "foreign_help.py").write_text("from foreign_deep import FACTOR\n")
    (tmp_path / "foreign_deep.py").write_text("FACTOR = 1\n")
    (tmp_path / "neighbour.py").write_text("")
    before = source_digest(imported("foreign_models").Foreign())
    (tmp_path / "neighbour.py").write_text("SOMETHING = 2\n")
    assert source_digest(imported("foreign_models").Foreign()) == before
    (tmp_path / "foreign_deep.py").write_text("FACTOR = 2\n")
    assert source_digest(imported("foreign_models").Foreign()) != before


def test_a_class_that_it_derives_from_counts(module, tmp_path):
    (tmp_path / "derived_models.py").write_text(
        f'from foreign_models import Foreign\n\nclass Derived(Foreign):\n{" " * 4}name = "derived"\n'
    )
    before = source_digest(imported("derived_models").Derived())
    (tmp_path / "foreign_models.py").write_text(FOREIGN + "# changed\n")
    assert source_digest(imported("derived_models").Derived()) != before
    imported("derived_models", wanted=False)


def test_the_name_of_a_model_that_is_built_in_is_refused(module):
    module.Foreign.name = "als"
    with pytest.raises(WrongSetting, match="has the name 'als' of a model that is built in: give it another"):
        Config(model=module.Foreign())


def test_what_can_not_be_recorded_with_a_checkpoint_is_refused(module):
    module.Foreign.uses = ("no-such-package",)
    with pytest.raises(WrongSetting, match="uses 'no-such-package', which is not installed under that name: give a"):
        Config(model=module.Foreign())


@pytest.mark.parametrize("name", ["threads", "preset", "progress"])
def test_an_argument_of_every_recommender_is_no_setting_of_a_model(module, name):
    kinds = {"__annotations__": {name: int}, name: 1, "__doc__": "Settings.", "__module__": __name__}
    module.Foreign.settings_class = type("Own", (ALSSettings,), kinds)
    with pytest.raises(WrongSetting, match=f"has a setting `{name}`, which recommenders or strategies have"):
        Config(model=module.Foreign())


def test_a_models_file_is_imported_when_the_model_is_first_asked_for():
    code = "import sys; from erasable.models import {}; print(*sorted(m for m in sys.modules if 'models._' in m))"

    def imported(name: str) -> set[str]:
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    before = imported("find_model")
    assert "erasable.models._popular" not in before
    assert imported("Popular") - before == {"erasable.models._popular"}
