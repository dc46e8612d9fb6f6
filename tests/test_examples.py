"""The examples run, and show what they say."""

import re

from scripts import run


def test_an_expert_of_ones_own():
    done = run("python", "examples/own_expert.py")
    assert done.code == 0, done.err
    assert "experts='r+popularity'" in done.out
    mrr = dict(re.findall(r"MRR (.*): (0\.\d+)", done.out))
    assert float(mrr["with both"]) > float(mrr["without the relational expert"])
    assert float(mrr["with both"]) > float(mrr["without the popularity expert"])
    assert re.search(r"[+-]\d\.\d+  Popularity", done.out)


def test_graph_convolutions_in_front_of_a_scorer():
    done = run("python", "examples/rgcn.py")
    assert done.code == 0, done.err
    assert float(done.out.split("MRR ")[1]) > 0.2
