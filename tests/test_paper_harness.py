"""The reproduction of the paper's tables, on the embedded data set."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from reproduction import job as job_module
from reproduction import layout, report, train
from reproduction.cardinality import asks_for_one
from reproduction.cells import chosen, mean_of
from reproduction.job import Job, trained_on
from reproduction.markdown import figure
from reproduction.records import Places, read_records, record_path
from reproduction.tables import TABLES, Row, jobs_of
from reproduction.train import (
    is_done,
    permute_numbers,
    run_job,
    with_conclusions,
    with_facts,
)
from test_mining import as_kb

from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import Families, load_dataset
from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.recipes.factors import as_tensors
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.training import EarlyStopping, Run, scale_experts
from kblrn_pyg.training.benchmark_recipes import MODERN, PAPER

SHORT = PAPER.shortened()
LABELS = "edge_label_index"


@pytest.fixture
def places(tmp_path):
    return Places(None, tmp_path / "runs", tmp_path / "results")


def test_jobs_of_a_table_share_trainings():
    jobs = list(jobs_of(TABLES["benchmarks"], PAPER, ["FB15k-237"]))
    names = [job.name for job in jobs]
    # DistMult is KBl; six instances, four of them in two sizes; three seeds of two.
    assert len(set(names)) == 2 * 2 + 2 * 4 + 2 + 2 * 2 * 2
    numerical = {
        job.name for job in jobs_of(TABLES["numerical"], PAPER, ["FB15k-237-num"])
    }
    assert numerical < set(names)
    assert trained_on("FB15k-237-num") == "FB15k-237"
    modern = list(jobs_of(TABLES["benchmarks"], MODERN, ["FB15k-237"]))
    ours = [job for job in modern if job.recipe.name == "modern"]
    assert {job.scorer for job in ours if "l" in job.experts} == {"complex"}
    # Other systems have recipes of their own.
    others = {job.recipe.name for job in modern} - {"modern"}
    assert others == {"node+link", "rgcn", "conve"}
    assert len(set(names)) == len({job for job in names})


def test_other_systems_have_records(places):
    table = TABLES["rules"].shortened()
    given = MODERN.shortened(), ["Families"]
    jobs = list(jobs_of(table, *given, rows=["TransH", "ASR-ComplEx"]))
    assert {job.recipe.name for job in jobs} == {"transh", "asr"}
    for job in jobs:
        assert run_job(job, places, progress=False)
    records = read_records(places.results)
    for row in table.rows:
        found = chosen(records, "Families", row, "modern")
        assert len(found) == (row.name in ("TransH", "ASR-ComplEx"))


def test_rules_as_features_and_in_the_loss_of_the_same_embeddings():
    table, rows = TABLES["penalties"], {row.name: row for row in TABLES["rules"].rows}
    assert list(jobs_of(table, PAPER)) == []
    jobs = {}
    for dataset in table.datasets:
        for row in table.rows:
            (jobs[row.name],) = jobs_of(table, MODERN, [dataset], rows=[row.name])
            if row.name in rows:  # tables share trainings
                (other,) = jobs_of(TABLES["rules"], MODERN, [dataset], rows=[row.name])
                assert other == jobs[row.name]
        for alone, features, loss in (
            ("ComplEx", "ComplEx, rules as features", "ASR-ComplEx"),
            ("TransE", "TransE, rules as features", "Kale-joint"),
        ):
            base, in_loss = jobs[alone], jobs[loss]
            assert jobs[features].beginnings[0] == base
            assert in_loss.schedule == base.schedule
            sizes = (base.scorer, base.hidden_channels, base.negatives)
            assert sizes == (in_loss.scorer, in_loss.hidden_channels, in_loss.negatives)
            added = in_loss.recipe.model.items() - base.recipe.model.items()
            assert {name for name, _ in added} == {"penalty", "penalty_weight"}
        assert replace(jobs["Kale-pre"], infers=False) == jobs["TransE"]
    assert len({job.name for job in jobs.values()}) == len(table.rows)


def test_rows_that_differ_by_inference_have_records_of_their_own():
    rows = TABLES["penalties"].rows
    (job,) = jobs_of(TABLES["penalties"], MODERN, ["FB122"], rows=["Kale-pre"])
    metrics = {"mrr": 0.6, "hits@3": 0.6, "hits@5": 0.6, "hits@10": 0.6, "mr": 9.0}
    record = {"job": job.described("FB122"), "val": metrics}
    record |= {"test": {"overall": metrics}, "test-I": metrics, "test-II": metrics}
    for row in rows:
        found = chosen([record], "FB122", row, "modern")
        assert len(found) == (row.name == "Kale-pre")
    text = layout.table_text("penalties", [record], ["FB122"])
    lines = [line for line in text.splitlines() if line.startswith("| Kale-pre")]
    assert [line.count("60.0") for line in lines] == [4, 4, 4]
    assert "52.3" in lines[0]  # quoted by the paper
    assert "recipe paper" not in text


def test_node_features_and_inferred_facts(places):
    systems = TABLES["benchmarks"].shortened().rows
    (row,) = [row for row in systems if row.name == "Node+LinkFeat"]
    (job,) = [Job("Families", row.system, **one) for one in row.choices(row.system)]
    # What has no letter learns apart, too.
    assert [one.experts for one in job.beginnings] == ["r", "+node"]
    assert [one.schedule for one in job.beginnings] == [row.system.schedule] * 2
    assert run_job(job, places, progress=False)
    records = {one["job"]["experts"]: one for one in read_records(places.results)}
    assert records.keys() == {"r", "+node", "r+node"}
    record = records["r+node"]
    assert record["num_rules"] > 0
    assert record["factors"].keys() == {"node"}
    assert record["val"]["mrr"] > max(
        records[one]["val"]["mrr"] for one in ("r", "+node")
    )
    assert {rule["body"].count("(") for rule in record["heaviest_rules"]} <= {1}


def test_what_learns_apart():
    apart = replace(MODERN, apart=True)
    for experts, parts in (
        ("l", ()),
        ("rne", ()),
        ("+node", ()),
        ("lrne", ("l", "rne")),
        ("lr+node", ("l", "r", "+node")),
    ):
        assert apart.beginnings(experts) == parts
    assert MODERN.schedule_of("r+node") == MODERN.schedule_of("lr+node")  # as they are
    assert MODERN.schedule_of("+node") == MODERN.schedule_of("r")


def test_what_follows_is_learned_too():
    train = load_dataset("Families")["train"]
    before = flat_triples(train)
    more = torch.tensor([[0, 1, 2], [3, 1, 4], [0, 1, 2]])
    more = torch.cat([more, torch.stack(before, dim=1)[:5]])
    after = {*zip(*(index.tolist() for index in flat_triples(with_facts(train, more))))}
    known = {*zip(*(index.tolist() for index in before))}
    assert after == known | {(0, 1, 2), (3, 1, 4)}
    assert len(flat_triples(train)[0]) == len(before[0])


def test_what_follows_from_what_follows_is_learned_too():
    data = as_kb([(0, 0, 1), (1, 0, 2), (1, 2, 0)], 3, 3)
    # r1(x, y) <= r0(x, y), and r2(x, y) <= r1(x, z), r1(z, y)
    names = [name for _, name, _ in data.edge_types]
    rules = RuleSet.build(names, head=[1, 2], steps=[[0], [2, 2]])
    after = flat_triples(with_conclusions(data, rules))
    found = {*zip(*(index.tolist() for index in after))}
    inferred = {(0, 1, 1), (1, 1, 2), (0, 2, 2)}
    assert found == {(0, 0, 1), (1, 0, 2), (1, 2, 0)} | inferred
    assert len(flat_triples(data)[0]) == 3


def test_recipe_of_the_paper_is_that_of_section_5():
    for experts in ("l", "r", "lrn"):
        schedule = PAPER.schedule_of(experts)
        wanted = {"batch_size": 512, "lr": 0.001, "validate_every": 5}
        assert schedule.training == wanted
        assert (schedule.epochs, schedule.patience) == (100, 0)
        assert PAPER.beginnings(experts) == ()
    assert PAPER.model == {"num_negatives": 500}
    assert PAPER.sizes == (100, 200)
    assert MODERN.model["num_negatives"] is None


def test_record_tells_what_was_done(places):
    job = Job("Families", SHORT, "lrn", 8)
    assert not is_done(job, places)
    assert run_job(job, places, progress=False)
    assert is_done(job, places)
    (record,) = read_records(places.results)
    assert record["job"]["experts"] == "lrn"
    assert record["job"]["num_negatives"] == 500
    assert record["epochs"] == 2
    assert record["seconds"] > 0
    overall = record["test"]["overall"]
    assert overall["count"] == 2 * 1659
    assert 0.05 < overall["mrr"] < 1
    assert record["heaviest_rules"][0]["weight"] > 0
    assert set(record["versions"]) >= {"torch", "kblrn_pyg"}
    for kind in ("by_answers", "by_cardinality"):
        parts = record["test"][kind]
        assert sum(part["count"] for part in parts.values()) == overall["count"]
    assert record["test"]["by_answers"] != record["test"]["by_cardinality"]


def test_what_a_relation_has_one_of():
    splits = {name: Families(split=name)[0] for name in ("train", "val", "test")}
    head, rel, tail = (
        column.repeat(2) for column in flat_triples(splits["test"], LABELS)
    )
    names = [name for _, name, _ in splits["train"].edge_types]
    side, blank = np.repeat([0, 1], len(rel) // 2), np.ones(len(rel), np.int64)
    table = RankTable(names, rel, side, head, tail, blank, blank, blank)
    found = asks_for_one(table, splits["train"], [splits["val"], splits["test"]])

    heads, tails = {}, {}
    for name, split in splits.items():
        key = "edge_index" if name == "train" else LABELS
        for h, r, t in zip(*(column.tolist() for column in flat_triples(split, key))):
            heads.setdefault(r, {}).setdefault(t, set()).add(h)
            tails.setdefault(r, {}).setdefault(h, set()).add(t)
    for side, answers in enumerate((heads, tails)):
        for row in np.flatnonzero(table.side == side):
            sizes = [len(some) for some in answers[table.relation[row]].values()]
            assert found[row] == (np.mean(sizes) < 1.5)
    found = {(names[r], s): one for r, s, one in zip(table.relation, table.side, found)}
    assert found["spouse", 0]
    assert found["born_in", 1]  # a tail: one is born in one place
    assert not found["born_in", 0]


def test_killed_campaign_goes_on_as_if_nothing_had_happened(places, monkeypatch):
    job = Job("Families", SHORT, "r", 0)
    run_job(job, places, progress=False)
    (whole,) = read_records(places.results)

    again = Places(None, places.runs.parent / "again", places.runs.parent / "other")
    calls, end_validation = [], train._Campaign._end_validation

    def dying(campaign, progress):
        calls.append(progress.epoch)
        if len(calls) == 2:
            raise MemoryError("killed")
        end_validation(campaign, progress)

    monkeypatch.setattr(train._Campaign, "_end_validation", dying)
    with pytest.raises(MemoryError):
        run_job(job, again, progress=False)
    assert run_job(job, again, progress=False)
    assert calls == [1, 2, 2]  # the first epoch is not done again
    (other,) = read_records(again.results)
    for key in ("val", "test", "best_epoch", "heaviest_rules"):
        assert other[key] == whole[key]
    assert other.keys() == whole.keys()
    assert other["peak_memory_mb"] > 0


def test_data_sets_of_one_training_have_records_of_their_own(places, monkeypatch):
    """As FB15k-237 and FB15k-237-num have."""
    judged = {"Families": ("Families", "families")}
    monkeypatch.setattr(job_module, "JUDGED", judged)
    job = Job("Families", SHORT, "n", 0)
    values = iter([0.3, 0.1, 0.2, 0.2])
    update = EarlyStopping.update
    monkeypatch.setattr(
        EarlyStopping,
        "update",
        lambda self, epoch, _, counts: update(self, epoch, next(values), counts),
    )
    assert run_job(job, places, progress=False)
    found = [
        json.loads(record_path(places.results, job.name, name).read_text())
        for name in judged["Families"]
    ]
    assert [one["job"]["dataset"] for one in found] == ["Families", "families"]
    assert [one["best_epoch"] for one in found] == [1, 2]
    assert [one["epochs"] for one in found] == [2, 2]
    assert [one["stopped_early"] for one in found] == [True, False]
    assert found[0]["test"]["overall"] != found[1]["test"]["overall"]


def test_experts_that_learned_apart_are_balanced(places):
    recipe = MODERN.on("FB15k").shortened()
    job = Job("Families", recipe, "lrn", 8, scorer="complex", seed=3)
    latent, features = job.beginnings
    assert latent == Job("Families", recipe, "l", 8, scorer="complex", seed=3)
    assert (features.experts, features.hidden_channels) == ("rn", 0)
    assert latent.beginnings == features.beginnings == ()
    assert replace(job, permuted=True).beginnings == (
        latent,
        replace(features, permuted=True),
    )
    assert run_job(job, places, progress=False)
    state = {}
    for one in job.beginnings:
        state |= Run(places.runs / one.name).best_weights()
    record = next(
        one for one in read_records(places.results) if one["job"]["experts"] == "lrn"
    )
    assert record["epochs"] == record["best_epoch"] == 0
    assert set(record["factors"]) == {"relational", "numerical"}
    # The factors of the record make the same figures of what was learned apart.
    campaign = train._Campaign(job, places, places.runs / "another")
    campaign.model.load_state_dict(state)
    scale_experts(campaign.model, as_tensors(campaign.model, record["factors"]))
    found = campaign._rank("Families", "val").metrics().mrr
    assert found == pytest.approx(record["val"]["mrr"], abs=1e-6)


def test_evidence_alone_learns_for_a_short_time():
    assert MODERN.schedule_of("e").epochs < MODERN.schedule_of("rne").epochs


def test_a_folder_belongs_to_one_process(places):
    job = Job("Families", SHORT, "r", 0)
    (places.runs / job.name).mkdir(parents=True)
    with train._locked(places.runs / job.name / "lock") as is_mine:
        assert is_mine
        assert not run_job(job, places, progress=False)
    assert not is_done(job, places)


def test_permuted_numbers_stay_with_their_attribute():
    data = Families(split="train")[0]
    before = data["entity"].x.clone()
    permute_numbers(data, seed=3)
    after = data["entity"].x
    assert torch.equal(before.isnan(), after.isnan())
    for old, new in zip(before.t(), after.t()):
        old, new = old[~old.isnan()], new[~new.isnan()]
        assert torch.equal(old.sort().values, new.sort().values)
    assert not torch.equal(before.nan_to_num(), after.nan_to_num())


def record_of(size, seed, val, test):
    job = {"dataset": "FB15k-237", "recipe": "paper", "experts": "lr"}
    job |= {"scorer": "distmult", "numerical": "rbf", "permuted": False}
    metrics = {"mr": 200.0, "mrr": test, "hits@1": 0.2, "hits@10": 0.5}
    return {
        "job": {**job, "hidden_channels": size, "seed": seed},
        "val": {"mrr": val},
        "test": {"overall": metrics, "by_answers": {}, "by_relation": {}},
        "best_epoch": 5,
        "epochs": 10,
        "seconds": 60.0,
        "peak_memory_mb": 100.0,
        "heaviest_rules": [],
    }


def test_sizes_are_chosen_by_validation_and_seeds_averaged():
    records = [
        record_of(100, 0, val=0.30, test=0.29),
        record_of(200, 0, val=0.31, test=0.28),  # better there, worse here
        record_of(100, 1, val=0.32, test=0.30),
    ]
    found = chosen(records, "FB15k-237", Row("KBlr", "lr"), "paper")
    assert [one["test"]["overall"]["mrr"] for one in found] == [0.28, 0.30]
    cell = mean_of(found, lambda record: layout.overall(record, "mrr"))
    assert cell.mean == pytest.approx(0.29)
    assert cell.deviation == pytest.approx(np.std([0.28, 0.30], ddof=1))
    assert figure("mrr", cell) == "29.0 ±1.4"
    text = layout.table_text("benchmarks", records, ["FB15k-237"])
    (line,) = [line for line in text.splitlines() if line.startswith("| KBlr |")]
    assert "29.0 ±1.4" in line
    assert "30.6" in line  # the paper's


def test_rows_of_one_recipe_have_no_cells_of_the_other():
    record = record_of(MODERN.on("FB15k").sizes[0], 0, val=0.8, test=0.8)
    record["job"] |= {"dataset": "FB15k", "recipe": "modern", "experts": "l"}
    record["job"] |= {"scorer": "complex"}
    for name, count in (("KBl", 1), ("ComplEx", 0)):
        (row,) = [row for row in TABLES["benchmarks"].rows if row.name == name]
        assert len(chosen([record], "FB15k", row, "modern")) == count


def test_report_names_what_was_not_run(tmp_path):
    job = Job("FB15k-237", PAPER, "lr", 100)
    lines = [
        f"- {dataset}, paper, KBlr, distmult, size 100, seed 0\n"
        for dataset in ("FB15k-237", "FB15k-237-num")
    ]
    before = report._not_run(tmp_path)
    assert all(before.count(line) == 1 for line in lines)
    record_path(tmp_path, job.name, "FB15k-237").write_text("{}")
    assert report._not_run(tmp_path) == before.replace(lines[0], "")


def test_report_names_what_is_below_the_paper(tmp_path):
    (tmp_path / "results").mkdir()
    for seed, test in enumerate((0.27, 0.28)):
        path = tmp_path / "results" / f"{seed}.json"
        record = record_of(100, seed, 0.3, test) | {"usa_contains": {"mrr": 0.5}}
        path.write_text(json.dumps(record))
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report._BEGIN}\nold\n{report._END}\nafter\n")
    (tmp_path / "benchmarks").mkdir()
    report.write_report(tmp_path, tmp_path / "results")
    text = (tmp_path / "benchmarks" / "RESULTS.md").read_text()
    assert "- FB15k-237, KBlr: MRR 27.5 ±0.7, 3.1 points below the paper's 30.6" in text
    assert "- (USA, contains, ?), KBlr: MRR 50.0 ±0.0, 16.8 points below" in text
    assert "old" not in readme.read_text()
    assert readme.read_text().startswith("before\n")
    assert readme.read_text().endswith("after\n")
    assert "FB15k-237, KBlr | 30.6" in readme.read_text()
