from erasable.data import SyntheticSettings, synthesise
from erasable.paper._cells import ExperimentSettings
from erasable.paper._report import Chapter, DataFacts, Setting, write_report
from erasable.paper._workbench import Experiment, PaperClaim, share_verdict

CLAIM = PaperClaim("Easy first is better.", "holds if it is always so", "it was so in 3 of 4 cases.", "holds in part")


def experiment(name="order", title="which group comes first"):
    nothing = {"entries": None, "values": None, "claims": None, "tables": None, "figures": None}
    return Experiment(name=name, title=title, about="Both orders are learned.", **nothing)


def written(tmp_path, *chapters, **settings):
    facts = [DataFacts("shop", 100, 50, 1000), DataFacts("shop, 5-core", 80, 40, 900)]
    machines = [{"processor": name, "erasable": "0.1.0", "cpu_seconds": 1800.0} for name in ("slow", "fast", "slow")]
    write_report(tmp_path / "report.md", chapters, Setting(facts, ExperimentSettings(**settings), machines))
    return (tmp_path / "report.md").read_text()


def test_each_claim_stands_beside_what_was_measured_with_verdict_and_rule(tmp_path):
    text = written(tmp_path, Chapter(experiment(), (CLAIM,), "| table |", ("order.png",), "order.csv"))
    line = next(line for line in text.splitlines() if line.startswith("| [order]"))
    assert CLAIM.said in line
    assert CLAIM.measured in line
    assert "**holds in part**" in line
    assert f"- {CLAIM.said} *{CLAIM.rule}*" in text


def test_the_link_of_a_verdict_leads_to_its_chapter(tmp_path):
    text = written(tmp_path, Chapter(experiment(), (CLAIM,), "", (), "order.csv"))
    assert "## order: which group comes first" in text
    assert "(#order-which-group-comes-first)" in text


def test_figures_tables_and_csv_are_there(tmp_path):
    text = written(tmp_path, Chapter(experiment(), (), "| table |", ("a.png", "b.png"), "order.csv"))
    assert "(a.png)" in text
    assert "(b.png)" in text
    assert "| table |" in text
    assert "[order.csv](order.csv)" in text


def test_statistics_of_both_readings_of_the_paper_and_the_protocol(tmp_path):
    text = written(tmp_path, epochs=7, seeds=2, min_interactions=5)
    assert "| shop | 100 | 50 | 1,000 | 80.000% |" in text
    assert "| shop, 5-core | 80 | 40 | 900 | 71.875% |" in text
    assert "T = 7 epochs" in text
    assert "5-core; erased users" in text


def test_the_machines_are_those_that_measured_the_cells(tmp_path):
    assert "processor fast, slow; erasable 0.1.0; 3 cells, 1.5 hours of one core" in written(tmp_path)


def test_data_are_counted():
    rows = synthesise(SyntheticSettings(users=60, items=40, groups=4, per_user=8)).interactions
    facts = DataFacts.of("made up", rows)
    assert (facts.users, facts.ratings) == (len(rows.users), len(rows))


def test_a_verdict_by_the_share_of_cases():
    assert [share_verdict(share) for share in (0.95, 0.94, 0.5, 0.49)] == [
        "holds",
        "holds in part",
        "holds in part",
        "does not hold",
    ]
