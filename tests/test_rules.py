import gzip
import random
import re
from dataclasses import replace

import naive
import numpy as np
import pytest
import torch
from test_mining import as_dict, as_kb
from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError, load_kb, save_kb
from kblrn_pyg.datasets import Families
from kblrn_pyg.rules import (
    PAPER,
    MineRules,
    RuleSet,
    RuleSettings,
    Semantics,
    find_rules,
    mine_rules,
    provided_rules,
    read_rules,
    write_rules,
)

RELATIONS = ["spouse", "parent_of", "/x/likes"]


@pytest.fixture
def mined():
    return mine_rules(as_kb(*naive.random_kb(random.Random(10))), parallel=True)


def test_rules_read_as_people_write_them():
    rules = RuleSet.build(
        RELATIONS,
        head=[0, 1, 0, 2],
        steps=[[2, 3], [4], [2, 5], [1, 3]],
        parallel=[False, False, True, False],
        support=[812, 3, -1, 1],
        head_size=[2619, 4, -1, 1],
        body_size=[1097, -1, -1, 1],
    )
    assert str(rules).splitlines() == [
        "spouse(h, t) ⇐ parent_of(h, x) ∧ parent_of(t, x)   support 812, coverage 0.31, confidence 0.74",
        "spouse(h, t) ⇐ parent_of(h, t) ∧ /x/likes(t, h)",
        "parent_of(h, t) ⇐ /x/likes(h, t)   support 3, coverage 0.75",
        "/x/likes(h, t) ⇐ spouse(x, h) ∧ parent_of(t, x)   support 1, coverage 1.00, confidence 1.00",
    ]
    assert repr(rules) == "RuleSet(4, relations=3)"


def test_rules_are_grouped_and_distinct():
    rules = RuleSet.build(
        RELATIONS,
        head=[2, 0, 2, 2, 2],
        steps=[[0, 2], [2], [2, 0], [0, 2], [2, 0]],
        parallel=[True, False, True, False, False],
    )
    # The two parallel ones are one rule; the two paths are not.
    assert rules.head.tolist() == [0, 2, 2, 2]
    assert rules.ptr.tolist() == [0, 1, 1, 4]
    assert rules.bodies() == [
        (False, (2,)),
        (True, (0, 2)),
        (False, (0, 2)),
        (False, (2, 0)),
    ]


def test_three_hops_can_be_told():
    rules = RuleSet.build(RELATIONS, head=[0], steps=[[0, 3, 4]])
    assert (
        str(rules) == "spouse(h, t) ⇐ spouse(h, x) ∧ parent_of(y, x) ∧ /x/likes(y, t)"
    )


@pytest.mark.parametrize(("head", "steps"), [([3], [[0]]), ([-1], [[0]]), ([0], [[6]])])
def test_ids_that_do_not_exist_are_refused(head, steps):
    with pytest.raises(ValueError, match="must hold"):
        RuleSet.build(RELATIONS, head=head, steps=steps)


def test_filter_sort_and_merge(mined):
    least = float(np.median(mined.pca_confidence))
    sure = mined.filter(min_pca_confidence=least)
    assert 0 < len(sure) < len(mined)
    assert (sure.pca_confidence >= least).all()
    unsure = mined.select(mined.pca_confidence < least)
    assert as_dict(unsure.merge(sure)) == as_dict(mined)
    assert len(mined.merge(mined)) == len(mined)
    ordered = mined.sort("confidence")
    assert as_dict(ordered) == as_dict(mined)
    for relation in range(len(mined.relations)):
        values = ordered.confidence[ordered.of(relation)]
        assert (np.diff(values) <= 0).all()
    one = mined.filter(relations=[1])
    assert set(one.head.tolist()) == {1}
    with pytest.raises(ValueError, match="'key' must name a measure"):
        mined.sort("beauty")
    with pytest.raises(DataError, match=r"other relations .*only the rules have 'r0'"):
        mined.merge(RuleSet.build(RELATIONS, head=[0], steps=[[2]]))


def test_semantics_stay_with_the_rules(mined):
    choices = Semantics(equal_middle=False, self_loops=False)
    rules = mine_rules(
        as_kb(*naive.random_kb(random.Random(10))), equal_middle=False, self_loops=False
    )
    assert mined.semantics == Semantics() != choices
    for kept in (
        rules,
        rules.select([3, 0]),
        rules.filter(min_support=2, max_rules_per_relation=1),
        rules.sort("support"),
        rules.merge(rules),
        replace(rules, relations=[f"x{name}" for name in rules.relations]),
        RuleSet.from_dict(rules.to_dict()),
    ):
        assert kept.semantics == choices
    with pytest.raises(DataError, match="differ in equal_middle, self_loops cannot"):
        mined.merge(rules)
    with pytest.raises(ValueError, match="'steps' must not hold 'head'"):
        RuleSet.build(RELATIONS, [0], [[0, 2]], semantics=Semantics(head_in_body=False))


@pytest.mark.parametrize("ending", ["amie", "anyburl", "kale", "pt"])
def test_semantics_stay_in_files(tmp_path, ending):
    kb = as_kb(*naive.random_kb(random.Random(10)))
    path = tmp_path / f"rules.{ending}"
    for choices in (
        {"equal_ends": False},
        {"self_loops": False, "head_in_body": False},
    ):
        rules = mine_rules(kb, parallel=True, **choices)
        rules.save(path) if ending == "pt" else write_rules(rules, path, ending)
        again, refused = read_rules(path, rules.relations)
        assert (again.semantics, refused) == (Semantics(**choices), [])
        assert sorted(again.bodies()) == sorted(rules.bodies())
    if ending != "pt":
        write_rules(mine_rules(kb), path, ending)
        assert "#" not in path.read_text()
        assert read_rules(path, rules.relations)[0].semantics == Semantics()


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# semantics: equal_middles=False", ":1: unknown semantics 'equal_middles=F"),
        ("# semantics: equal_ends=no", ":1: unknown semantics 'equal_ends=no'"),
        ("# semantics: head_in_body=False", ":2: the body contains likes, but head_in"),
        (
            "# semantics: equal_ends=False\n# semantics: self_loops=False",
            ":2: the semantics differ",
        ),
    ],
)
def test_semantics_that_cannot_be_read(tmp_path, comment, message):
    path = tmp_path / "rules.kale"
    path.write_text(f"{comment}\nlikes(x,y)==>likes(y,x)\n")
    with pytest.raises(DataError, match=message):
        read_rules(path, RELATIONS)
    path.write_text("# mined on a Sunday\nlikes(x,y)==>likes(y,x)\n# end\n")
    rules, refused = read_rules(path, RELATIONS)
    assert (rules.bodies(), refused) == ([(False, (5,))], [])


def test_measures_that_are_unknown_reach_no_threshold():
    rules = RuleSet.build(RELATIONS, head=[0], steps=[[2]])
    assert len(rules.filter()) == 1
    assert len(rules.filter(min_confidence=0.1)) == 0


def test_save_and_load(mined, tmp_path):
    mined.save(tmp_path / "rules.pt")
    loaded = RuleSet.load(tmp_path / "rules.pt")
    assert str(loaded) == str(mined)
    assert as_dict(loaded) == as_dict(mined)


@pytest.mark.parametrize("format", ["amie", "anyburl", "kale"])
def test_text_formats_round_trip(mined, tmp_path, format):
    path = tmp_path / "rules.txt"
    write_rules(mined, path, format)
    for chosen in (format, None):
        rules, refused = read_rules(path, mined.relations, chosen)
        assert refused == []
        assert sorted(zip(rules.head.tolist(), rules.bodies())) == sorted(
            zip(mined.head.tolist(), mined.bodies())
        )
    if format == "amie":
        assert as_dict(rules) == as_dict(mined)
    with pytest.raises(ValueError, match="'format' must be one of"):
        write_rules(mined, path, "prolog")


def test_rules_without_measures_can_be_read_again(tmp_path):
    rules = RuleSet.build(["a", "b"], head=[1], steps=[[0]])
    write_rules(rules, tmp_path / "rules.tsv")
    again, _ = read_rules(tmp_path / "rules.tsv", ["a", "b"])
    assert again.head.tolist() == [1]
    assert again.support.tolist() == [-1]
    text = (tmp_path / "rules.tsv").read_text()
    (tmp_path / "rules.tsv").write_text(text.replace("-1", "nan"))
    with pytest.raises(DataError, match=r"rules.tsv:2: 'nan' is not a count"):
        read_rules(tmp_path / "rules.tsv", ["a", "b"])


def test_foreign_texts(tmp_path):
    texts = {
        "amie": "Rule\tHead Coverage\n"
        "?e  parent_of  ?b  ?a  parent_of  ?e   => ?a  spouse  ?b\n",
        "anyburl": "10\t5\t0.5\tspouse(X,Y) <= parent_of(A,Y), parent_of(X,A)\n",
        "kale": "parent_of(x,y)&&parent_of(y,z)==>spouse(x,z)\n",
    }
    for format, text in texts.items():
        path = tmp_path / f"{format}.gz"
        path.write_bytes(gzip.compress(text.encode()))
        rules, _ = read_rules(path, RELATIONS)
        assert rules.bodies() == [(False, (2, 2))]
    rules, _ = read_rules(tmp_path / "anyburl.gz", RELATIONS)
    assert rules.support.tolist() == [5]
    assert rules.confidence.tolist() == [0.5]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("spice(x,y)==>spouse(x,y)", "unknown relation 'spice'"),
        (
            "likes(x,y)&&likes(y,z)&&likes(z,w)==>spouse(x,w)",
            "not a path of one or two",
        ),
        ("likes(x,y)&&likes(z,w)==>spouse(x,w)", "not a path"),
        ("likes(x,y)==>spouse(x,z)", "not a path"),
        ("likes(x,y)==>spouse(x,x)", "has one variable"),
        ("likes(x,x)&&likes(x,y)==>spouse(x,y)", "has one variable"),
        ("spouse(x,y)==>spouse(x,y)", "the body is the head"),
        ("spouse(x,y)&&likes(x,y)==>spouse(x,y)", "the body contains the head"),
        ("likes(x,y)&&likes(x,y)==>spouse(x,y)", "two different atoms"),
        ("likes ==> spouse", "no rule|not a rule"),
        ("1\t1\t1\tspouse(X,ben) <= likes(X,A)", "'ben' is a constant"),
        ("1\tone\t1\tspouse(X,Y) <= likes(X,Y)", "'one' is not a number"),
        ("?a  likes  => ?a  spouse  ?b", "not a rule"),
    ],
)
def test_lines_that_give_no_rule(tmp_path, line, message):
    format = "anyburl" if "<=" in line else "amie" if "?" in line else "kale"
    path = tmp_path / "rules.txt"
    good = {
        "kale": "likes(x,y)==>spouse(y,x)",
        "anyburl": "4\t2\t0.5\tspouse(X,Y) <= likes(Y,X)",
        "amie": "?a  likes  ?b   => ?b  spouse  ?a",
    }[format]
    path.write_text(f"{good}\n{line}\n")
    with pytest.raises(DataError, match=message) as caught:
        read_rules(path, RELATIONS)
    assert caught.value.line == 2
    rules, refused = read_rules(path, RELATIONS, strict=False)
    assert rules.bodies() == [(False, (5,))]
    assert [r.line for r in refused] == [2]
    assert re.search(message, refused[0].reason)


def test_rule_files_that_cannot_be_read(tmp_path):
    save_kb(as_kb([(0, 0, 1)], 2, 1), tmp_path / "kb.pt")
    for load in (RuleSet.load, lambda path: read_rules(path, RELATIONS)):
        with pytest.raises(DataError, match=r"kb\.pt: is a knowledge base, expected"):
            load(tmp_path / "kb.pt")
    path = tmp_path / "rules.txt"
    for text in ("\n", "# nothing\n"):
        path.write_text(text)
        with pytest.raises(DataError, match=r"rules\.txt:1: the file is empty"):
            read_rules(path, RELATIONS)
    path.write_bytes(b"a(x,y)==>b(x,y)\n\xff\n")
    with pytest.raises(DataError, match=r"rules\.txt:2: is not UTF-8"):
        read_rules(path, RELATIONS)


def test_rules_of_other_relations_are_refused(tmp_path):
    rules = RuleSet.build(["a", "b"], head=[1], steps=[[0]])
    rules.save(tmp_path / "rules.pt")
    assert str(read_rules(tmp_path / "rules.pt", ["a", "b"])[0]) == str(rules)
    message = r"rules\.pt: .*only the rules have 'b', only the data 'c', 'd'\)"
    with pytest.raises(DataError, match=message):
        read_rules(tmp_path / "rules.pt", ["a", "c", "d"])
    with pytest.raises(DataError, match=r"in another order \(only the rules have none"):
        rules.check_relations(["b", "a"])
    with pytest.raises(DataError, match=r"\.\.\., only the data none"):
        RuleSet.build("abcdefgh", [0], [[2]]).check_relations(["a"])


def test_rules_of_the_data_set():
    data = as_kb([(0, 0, 1), (1, 1, 0)], 2, 2)
    with pytest.raises(DataError, match="comes without rules"):
        provided_rules(data)
    data.rule_lines = ["r0(x,y)==>r1(y,x)", "", "r1(x,y)&&r1(y,z)==>r0(x,z)"]
    rules = provided_rules(data)
    assert rules.bodies() == [(False, (2, 2)), (False, (1,))]
    assert str(find_rules(data, RuleSettings(rules="provided"))) == str(rules)
    data.rule_lines[2] = "r7(x,y)==>r1(y,x)"
    with pytest.raises(DataError, match="<lines>:3: unknown relation 'r7'"):
        provided_rules(data)


def test_rules_are_found_as_the_settings_say(tmp_path):
    data = Families()[0]
    plain = find_rules(data, RuleSettings())
    assert str(plain) == str(mine_rules(data, confidences=False))
    few = find_rules(data, RuleSettings(min_head_coverage=0.5))
    assert 0 < len(few) == (plain.head_coverage >= 0.5).sum() < len(plain)
    paper = find_rules(data, RuleSettings(preset="paper"))
    assert str(paper) == str(mine_rules(data, **PAPER))
    paper.save(tmp_path / "rules.pt")
    write_rules(paper, tmp_path / "rules.tsv")
    for name in ("rules.pt", "rules.tsv"):
        rules = find_rules(data, RuleSettings(rules=str(tmp_path / name)))
        assert as_dict(rules) == as_dict(paper)
    for wrong in ({"preset": "paper"}, {"min_head_coverage": 0.2}):
        with pytest.raises(ValueError, match="together with 'rules'"):
            RuleSettings(rules="rules.tsv", **wrong)
    with pytest.raises(ValueError, match=r"'preset' must be paper \(got 'x'\)"):
        RuleSettings(preset="x")


def test_transform_leaves_rules_with_the_data(tmp_path):
    mine = MineRules(max_rules_per_relation=3, equal_ends=False)
    data = Families(pre_transform=mine)[0]
    save_kb(data, tmp_path / "kb.pt")
    rules = RuleSet.of_data(load_kb(tmp_path / "kb.pt"))
    assert 0 < np.diff(rules.ptr).max() <= 3
    assert rules.semantics == Semantics(equal_ends=False)
    assert repr(MineRules(max_hops=1)) == "MineRules(max_hops=1)"
    with pytest.raises(DataError, match="has no rules"):
        RuleSet.of_data(Families()[0])


@pytest.mark.parametrize(
    ("head", "steps", "parallel", "measures", "message"),
    [
        ([0, 0], [[2]], None, {}, r"'steps' must have 2 entries, as 'head' \(got 1\)"),
        ([0], [[2]], [False, True], {}, "'parallel' must have 1 entries"),
        ([0], [[2]], None, {"support": [1, 2]}, "'support' must have 1 entries"),
        ([0], [[2]], None, {"weight": [1]}, r"'measures' must be among .*weight"),
        ([0], [[]], None, {}, "codes of at least 0"),
        ([0], [[-5]], None, {}, "codes of at least 0"),
        ([0], [[6]], None, {}, "'steps' must hold codes"),
        ([0], [[2, 2]], [True], {}, "two different steps"),
        ([0], [[2, 3, 4]], [True], {}, "two different steps"),
        ([0], [[0]], None, {}, "its own head"),
        ([0], [[2, 0]], [True], {}, "its own head"),
    ],
)
def test_rules_that_are_none_are_refused(head, steps, parallel, measures, message):
    with pytest.raises(ValueError, match=message):
        RuleSet.build(RELATIONS, head, steps, parallel, **measures)


def test_parallel_steps_are_ordered_beside_longer_bodies():
    rules = RuleSet.build(
        RELATIONS, [0, 1], [[5, 2], [0, 0, 4]], parallel=[True, False]
    )
    assert rules.steps.tolist() == [[2, 5, -1], [0, 0, 4]]


def test_filter_takes_names(mined):
    name = mined.relations[int(mined.head[0])]
    by_name = mined.filter(relations=[name])
    assert len(by_name) == int((mined.head == mined.head[0]).sum()) > 0
    with pytest.raises(DataError, match="unknown relation 'nobody'"):
        mined.filter(relations=["nobody"])


@pytest.mark.parametrize(
    "line",
    [
        "?a  likes  Paris  ?b  likes  Paris   => ?a  spouse  ?b",
        "likes(x,Paris)&&likes(y,Paris)==>spouse(x,y)",
        "spouse(X,Y) <= likes(X,paris), likes(Y,paris)",
    ],
)
def test_rules_with_constants_are_refused(tmp_path, line):
    path = tmp_path / "rules.txt"
    path.write_text(line + "\n")
    with pytest.raises(DataError, match=r"rules\.txt:1: '.aris' is a constant"):
        read_rules(path, RELATIONS)


def test_no_atom_of_a_rule_is_dropped(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("spouse(X,Y) <= parent_of(X,Y), likes(Y)\n")
    with pytest.raises(DataError, match=r"rules\.txt:1: not a rule"):
        read_rules(path, RELATIONS)


def test_mining_looks_at_what_it_is_given():
    broken = as_kb([(0, 0, 1)], 2, 1)
    broken["entity", "r0", "entity"].edge_index[0, 0] = 5
    with pytest.raises(DataError, match="must lie in 0 to 1"):
        mine_rules(broken)
    with pytest.raises(ValueError, match="'min_confidence' must be a finite number"):
        mine_rules(as_kb([(0, 0, 1)], 2, 1), min_confidence=float("nan"))


def test_rules_of_graphs_with_several_node_types():
    typed = HeteroData()
    typed["user"].num_nodes, typed["item"].num_nodes = 2, 2
    edges = torch.tensor([[0, 1], [0, 1]])
    typed["user", "likes", "item"].edge_index = edges
    typed["user", "buys", "item"].edge_index = edges
    assert "likes(h, t) ⇐ buys(h, t)" in str(mine_rules(typed))
