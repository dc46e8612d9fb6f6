"""Text files of rules with constants, with names of any kind."""

import itertools
import random

import numpy as np
import pytest

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import Families
from kblrn_pyg.rules import (
    ConstantRuleSet,
    RuleSet,
    RuleSettings,
    Semantics,
    find_rules,
    mine_constants,
    mine_rules,
    read_rules,
    write_rules,
)
from kblrn_pyg.rules.atoms import quoted
from kblrn_pyg.rules.constant_columns import HEAD_AND_BODY

FORMATS = ["anyburl", "amie"]
RELATIONS = ["likes", "/x/knows"]
ENTITIES = ["Ada", "Ben", "Jam", "Tea", "Paris (Texas)", "Washington, D.C."]
HOSTILE = [
    *("X", "A", "(", ")", ",", "<=", "=>", "%", "%41", "?a", "a  b", " a", "a ", "\t"),
    *("a\nb", "\r", "X,b", "b,Y", "a(X,b", "r(X", "), r(X,b", "·", "ü ß", "# x", '"'),
    *("likes(X,Y)", "a(X,A), b(A", "\u2028", "\ufeffq", "?", "-1", "", "x"),
]


def every_shape(relations, entities, rng, number=60):
    """Random rules of all shapes, with measures."""
    codes, size = 2 * len(relations), len(entities)
    rows = set()
    while len(rows) < number:
        head = rng.randrange(codes), rng.randrange(size)
        body = rng.choice(
            [(-1, -1), (rng.randrange(codes), rng.randrange(-1, size))],
        )
        if head[0] != body[0] or body[1] not in (-1, head[1]):
            rows.add((*head, *body))
    a, b, c, d = zip(*sorted(rows))
    sizes = [sorted(rng.choices(range(1, 30), k=3)) for _ in rows]
    support, pca, body = zip(*sizes)
    measures = {"support": support, "body_size": body, "pca_body_size": pca}
    return ConstantRuleSet.build(relations, entities, (a, b), (c, d), **measures)


def same_rules(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in HEAD_AND_BODY
    )


@pytest.mark.parametrize("format", FORMATS)
def test_text_formats_round_trip(tmp_path, format):
    path = tmp_path / "rules.txt"
    rules = every_shape(RELATIONS, ENTITIES, random.Random(0))
    write_rules(rules.as_rules(), path, format)
    assert "#" not in path.read_text()
    for chosen in (format, None):
        again, refused = read_rules(path, RELATIONS, chosen, entities=ENTITIES)
        assert (len(again), refused) == (0, [])
        assert same_rules(again.constants, rules)
        np.testing.assert_array_equal(again.constants.support, rules.support)
        np.testing.assert_array_equal(again.constants.body_size, rules.body_size)
    if format == "amie":
        assert again.constants == rules


def test_lines_are_those_of_anyburl(tmp_path):
    path = tmp_path / "rules.txt"
    rules = ConstantRuleSet.build(
        RELATIONS,
        ENTITIES,
        ([0, 0, 0, 3], [2, 2, 2, 4]),
        ([0, -1, 3, 2], [3, -1, -1, 1]),
        support=[9, 2, 1, 3],
        body_size=[20, 8, 2, 4],
        pca_body_size=[19, 2, 1, 3],
    )
    write_rules(rules.as_rules(), path, "anyburl")
    assert path.read_text().splitlines() == [
        "8\t2\t0.250000000\tlikes(X,Jam) <= ",
        "20\t9\t0.450000000\tlikes(X,Jam) <= likes(X,Tea)",
        "2\t1\t0.500000000\tlikes(X,Jam) <= /x/knows(A,X)",
        "4\t3\t0.750000000\t/x/knows(Paris (Texas),Y) <= /x/knows(Y,Ben)",
    ]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(6))
def test_names_of_any_kind_survive(tmp_path, seed, format):
    rng = random.Random(seed)
    path = tmp_path / "rules.txt"
    pieces = [name for name in HOSTILE if name]
    joined = ["".join(pair) for pair in itertools.permutations(pieces, 2)]
    names = pieces + rng.sample(joined, 30)
    entities = list(dict.fromkeys(names))
    relations = list(dict.fromkeys([*rng.sample(pieces, 5), "likes"]))
    rules = every_shape(relations, entities, rng, 300)
    write_rules(rules.as_rules(), path, format)
    again, refused = read_rules(path, relations, entities=entities)
    assert refused == []
    assert same_rules(again.constants, rules)
    # One hostile name among tame ones, which are written as they are if possible.
    for name in rng.sample(names, 10):
        few = every_shape(["likes", "knows"], ["Ada", "Ben", name], rng, 40)
        write_rules(few.as_rules(), path, format)
        again, _ = read_rules(path, few.relations, entities=few.entities)
        assert same_rules(again.constants, few), name


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("entities", [["a", "a"], ["", "b"]])
def test_names_that_nothing_tells_apart_are_refused(tmp_path, format, entities):
    rules = every_shape(RELATIONS, entities, random.Random(0), 20)
    with pytest.raises(ValueError, match="distinct names, which are not empty"):
        write_rules(rules.as_rules(), tmp_path / "rules.txt", format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_paths_and_constants_share_a_file(tmp_path, format):
    path = tmp_path / "rules.txt"
    data = Families()[0]
    paths = mine_rules(data, equal_middle=False, max_body_pairs=10_000)
    assert paths.estimated.any()
    for constants in (
        mine_constants(data, min_confidence=0.5),
        every_shape(paths.relations, ["X", "a(b", "c"], random.Random(1)),
    ):
        write_rules(paths.with_constants(constants), path, format)
        again, _ = read_rules(path, paths.relations, entities=constants.entities)
        assert again.semantics == Semantics(equal_middle=False)
        assert sorted(again.bodies()) == sorted(paths.bodies())
        assert again.estimated.sum() == paths.estimated.sum()
        assert same_rules(again.constants, constants)
        only_paths, refused = read_rules(path, paths.relations, strict=False)
        assert only_paths.constants is None
        assert len(only_paths) == len(paths)
        assert len(refused) == len(constants)
        assert "is a constant, expected variables only" in refused[0].reason


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "1\t1\t1\tlikes(X,Jam) <= likes(X,A), knows(A,Tea)",
            "at most one atom .got 2",
        ),
        ("1\t1\t1\tlikes(X,Jam) <= likes(X,A), knows(A,B)", "at most one atom .got 2"),
        ("1\t1\t1\tlikes(X,Y) <= likes(X,Tea)", "a variable and a constant .* 2 var"),
        ("1\t1\t1\tlikes(Ada,Jam) <= likes(X,Tea)", "a constant in its head .got 0"),
        ("1\t1\t1\tlikes(X,Jam) <= likes(Y,Tea)", "must have the variable X once"),
        ("1\t1\t1\tlikes(X,Jam) <= likes(X,X)", "must have the variable X once"),
        ("1\t1\t1\tlikes(X,Jam) <= likes(X,A)", "part of what the head says"),
        ("1\t1\t1\tlikes(X,Jam) <= likes(X,Jam)", "part of what the head says"),
        ("1\t1\t1\tlikes(X,Jam) <= likes(X,Rum)", "unknown entity 'Rum'"),
        ("1\t1\t1\tlikes(X,Jam) <= loves(X,Tea)", "unknown relation 'loves'"),
        ("1\t2\t1\tlikes(X,Jam) <= likes(X,Tea)", "2 of 1 entities cannot be"),
        ("-7\t-7\t1\tlikes(X,Jam) <= likes(X,Tea)", "'-7' is not a count"),
        ("1\tone\t1\tlikes(X,Jam) <= likes(X,Tea)", "'one' is not a number"),
        ("1\t1\t1\tlikes(X,Y) <= ", "not a rule"),
        ("1\t1\t1\tlikes(X,Jam)", "not a rule"),
        ("?a  likes  Jam  ?b  likes  Jam   => ?a  likes  Tea", "at most one atom"),
        ("  => ?a  likes  ?b", "not a rule"),
        ("?a  likes  ?b  => ?a  likes  Rum", "unknown entity 'Rum'"),
    ],
)
def test_lines_that_give_no_rule(tmp_path, line, message):
    path = tmp_path / "rules.txt"
    good = "4\t2\t0.5\tlikes(X,Jam) <= likes(X,Tea)"
    good = "?a  likes  Tea   => ?a  likes  Jam" if "?" in line else good
    path.write_text(f"{good}\n{line}\n")
    given = {"entities": ENTITIES}
    with pytest.raises(DataError, match=message) as caught:
        read_rules(path, RELATIONS, **given)
    assert caught.value.line == 2
    rules, refused = read_rules(path, RELATIONS, strict=False, **given)
    assert len(rules.constants) == 1
    assert [one.line for one in refused] == [2]


def test_a_text_that_can_be_read_in_two_ways_is_refused(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("1\t1\t1\tlikes(X,b,Y) <= likes(A,X)\n")
    with pytest.raises(DataError, match=r"'likes\(X,b,Y\)' can be read in several"):
        read_rules(path, RELATIONS, entities=["b,Y", "X,b"])
    rules, _ = read_rules(path, RELATIONS, entities=["b,Y", "Ada"])
    assert str(rules.constants).startswith("likes(x, b,Y) ⇐ likes(·, x)")


def test_encoded_names_are_announced_before_rules(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("likes(X,Jam) <= \n# names: percent-encoded\n")
    with pytest.raises(DataError, match=":2: must stand before all rules"):
        read_rules(path, RELATIONS, entities=ENTITIES)
    for name in HOSTILE:
        assert "%" in quoted(name) or quoted(name) == name


def test_kale_has_no_constants(tmp_path):
    rules = every_shape(RELATIONS, ENTITIES, random.Random(0)).as_rules()
    with pytest.raises(ValueError, match="'format' must be amie or anyburl"):
        write_rules(rules, tmp_path / "rules.kale", "kale")
    with pytest.raises(DataError, match="'Jam' is a constant"):
        read_rules(["likes(x,Jam)==>likes(x,y)"], RELATIONS, entities=ENTITIES)


@pytest.mark.parametrize("ending", ["pt", "txt", "tsv"])
def test_the_command_writes_what_training_reads(tmp_path, capsys, ending):
    path = tmp_path / f"rules.{ending}"
    command = ["mine", "Families", "--constants", "--min-pca-confidence", "0.4"]
    assert main([*command, "--min-support", "3", "--top", "2", "--out", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "saved" in shown
    assert "PCA confidence" in shown
    data = Families()[0]
    expected = mine_constants(data, min_pca_confidence=0.4, min_support=3)
    assert f"{len(expected):,}" in shown
    rules = find_rules(data, RuleSettings(rules=str(path)))
    assert same_rules(rules.constants, expected)
    if ending != "txt":
        assert rules.constants == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--constants", "--max-hops", "1"],
            "--max-hops has no effect with --constants",
        ),
        (["--constants", "--parallel"], "--parallel has no effect with --constants"),
        (["--constants", "--preset", "paper"], "--preset has no effect with"),
        (["--max-rules", "9"], "--max-rules has no effect without --constants"),
        (["--max-degree", "9"], "--max-degree has no effect without --constants"),
        (["--constants", "--min-support", "0"], "'min_support' must be at least 1"),
        (["--constants", "--out", "rules.kale"], "the format of KALE has no constants"),
    ],
)
def test_options_without_effect_are_refused(capsys, options, message):
    assert main(["mine", "Families", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_command_says_what_it_leaves_out(capsys, caplog):
    given = ["--max-degree", "20", "--max-rules", "3000", "--relation", "likes"]
    assert main(["mine", "Families", "--constants", *given]) == 0
    said = caplog.text
    assert (
        "entities with more than 20 features are not used as examples of rules" in said
    )
    assert "more than 3,000 rules with constants have a support of 2: only" in said
    assert "likes(x, " in capsys.readouterr().out


def test_training_says_what_it_leaves_out(tmp_path, capsys, caplog):
    facts = [("Hub", "knows", f"e{i}") for i in range(10_500)]
    facts += [(f"e{i}", "likes", f"e{i % 7}") for i in range(200)]
    path = tmp_path / "facts.tsv"
    path.write_text("".join("\t".join(fact) + "\n" for fact in facts))
    kb, run = str(tmp_path / "kb"), str(tmp_path / "run")
    assert (
        main(["import", "--train", str(path), "--holdout", "0.005", "--out", kb]) == 0
    )
    sizes = ["--num-negatives", "8", "--epochs", "1"]
    assert main(["train", kb, "--experts", "e", *sizes, "--out", run]) == 0
    said = "entity with more than 10,000 features is not used as examples of rules"
    assert caplog.text.count(said) == 1


def test_rule_files_of_other_entities_are_refused(tmp_path):
    path = tmp_path / "rules.pt"
    every_shape(RELATIONS, ENTITIES, random.Random(0)).save(path)
    assert len(read_rules(path, RELATIONS)[0].constants) == 60
    with pytest.raises(DataError, match=r"rules\.pt: .*other entities than the data"):
        read_rules(path, RELATIONS, entities=ENTITIES[:-1])


def test_rules_without_names_beside_paths():
    """A rule set without constants is written as it always was."""
    rules = RuleSet.build(["a(b)", "c"], [1], [[0]])
    lines = ["1\t1\t1\tc(X,Y) <= a(b)(X,Y)"]
    assert read_rules(lines, rules.relations)[0].bodies() == rules.bodies()
    assert read_rules(lines, rules.relations, entities=["e"])[0].bodies() == (
        rules.bodies()
    )
