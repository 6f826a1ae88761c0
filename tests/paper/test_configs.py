"""The settings that come with the project are settings of the experiments."""

from pathlib import Path

import pytest

from erasable.cli.options import read_config
from erasable.paper import EXPERIMENTS, ExperimentSettings

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_every_file_gives_a_grid_for_every_experiment(file):
    settings = ExperimentSettings(**read_config(file, ExperimentSettings.model_fields))
    assert all(experiment.entries(settings, "digest") for experiment in EXPERIMENTS.values())


def test_the_documents_settings_are_there():
    named = {file.stem: ExperimentSettings(**read_config(file, ExperimentSettings.model_fields)) for file in CONFIGS}
    assert (named["paper-ml-1m"].epochs, named["paper-ml-1m"].seeds) == (50, 10)
    assert (named["paper-amazon-digital-music"].epochs, named["paper-amazon-digital-music"].seeds) == (20, 10)
