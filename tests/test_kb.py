import copy
import random

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import RandomLinkSplit

from kblrn_pyg.data import (
    DataError,
    Names,
    Vocabulary,
    as_kb,
    ask,
    find_problems,
    flat_triples,
    load_kb,
    make_kb,
    read_kb,
    save_kb,
    split_types,
    to_networkx,
    unify_types,
    validate_kb,
)
from kblrn_pyg.data.ids import check_ids
from kblrn_pyg.data.names import shorten


def random_triples(rng, num_triples=60, num_entities=12, num_relations=5):
    """Has hubs, self-loops, duplicates, and names that need care."""
    return [
        (
            f"e {min(rng.randrange(num_entities), rng.randrange(num_entities))}",
            f"/r.{rng.randrange(num_relations)}/x",
            f"e {rng.randrange(num_entities)}",
        )
        for _ in range(num_triples)
    ]


def named(data, key):
    names, relations = data["entity"].name, [r for _, r, _ in data.edge_types]
    return [
        (names[h], relations[r], names[t])
        for h, r, t in zip(*(index.tolist() for index in flat_triples(data, key)))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_round_trip_of_triples_is_exact(seed):
    rng = random.Random(seed)
    train, test = random_triples(rng), random_triples(rng, 10, num_entities=20)
    kbs, _ = read_kb(train, test=test)
    for split, triples in (("train", train), ("test", test)):
        out = named(kbs[split], "edge_label_index")
        assert sorted(out) == sorted(set(triples))
        # Within a relation, the order of the source stays.
        for relation in {r for _, r, _ in triples}:
            wanted = [t for t in dict.fromkeys(triples) if t[1] == relation]
            assert [t for t in out if t[1] == relation] == wanted
    assert sorted(named(kbs["test"], "edge_index")) == sorted(set(train))


@pytest.mark.parametrize("seed", range(5))
def test_round_trip_of_knowledge_bases_is_exact(seed, tmp_path):
    rng = random.Random(seed)
    kbs, _ = read_kb(
        random_triples(rng),
        test=random_triples(rng, 10),
        numerical=[(f"e {i}", "born", rng.random()) for i in range(9)],
    )
    data = kbs["test"]
    again = make_kb(
        data["entity"].name,
        [relation for _, relation, _ in data.edge_types],
        flat_triples(data),
        data["entity"].x,
        data.attribute_names,
    )
    again = ask(again, flat_triples(data, "edge_label_index"))
    save_kb(data, tmp_path / "kb.pt")
    for other in (again, load_kb(tmp_path / "kb.pt")):
        assert_equal(data, other)


def assert_equal(data, other):
    assert data.node_types == other.node_types
    assert data.edge_types == other.edge_types
    for store, twin in zip(data.stores, other.stores):
        assert list(store.keys()) == list(twin.keys())
        for key, value in store.items():
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(
                    value, twin[key], rtol=0, atol=0, equal_nan=True
                )
            else:
                assert value == twin[key]


def test_ids_are_int64_and_unknown_numbers_are_nan():
    kbs, _ = read_kb([("a", "r", "b")], numerical=[("b", "n", 2)], min_entities=1)
    data = kbs["train"]
    assert all(index.dtype == torch.long for index in flat_triples(data))
    assert data["entity"].x.isnan().tolist() == [[True], [False]]
    assert data.num_nodes == 2


def test_large_numbers_keep_their_differences():
    kbs, _ = read_kb(
        [("a", "r", "b")],
        numerical=[("a", "n", 1.7e9), ("b", "n", 1.7e9 - 1)],
        min_entities=1,
    )
    x = kbs["train"]["entity"].x
    assert float(x[0] - x[1]) == 1


def test_empty_knowledge_base_is_flat_nothing():
    assert [index.numel() for index in flat_triples(HeteroData())] == [0, 0, 0]


RELATIONS = [
    "/people/person/spouse_s./people/marriage/spouse",
    "/people/marriage_union_type/unions_of_this_type./people/marriage/spouse",
    "/people/person/children",
    "http://x.org/ns#bornIn",
    "likes",
]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("likes", 4),
        ("children", 2),
        ("person/children", 2),
        ("bornIn", 3),
        ("/people/person/spouse_s./people/marriage/spouse", 0),
    ],
)
def test_resolve(name, found):
    assert Names("relation", RELATIONS).resolve(name) == found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spouse", f"relation 'spouse' is ambiguous, expected one of {RELATIONS[0]}, "),
        ("child", "unknown relation 'child', nearest are /people/person/children"),
        ("ren", "unknown relation 'ren', expected one of "),
        ("bornin", "nearest are http://x.org/ns#bornIn"),
    ],
)
def test_names_that_do_not_resolve(name, message):
    with pytest.raises(DataError) as caught:
        Names("relation", RELATIONS).resolve(name)
    assert message in str(caught.value)


def test_entities_resolve_by_identifier_and_by_label():
    names = Names("entity", ["/m/1", "/m/2", "/m/3"], ["Paris", "Paris", "Rome"])
    assert names.resolve("Rome") == names.resolve("/m/3") == 2
    assert names[0] == "Paris"
    with pytest.raises(DataError, match=r"'Paris' is ambiguous, .* /m/1, /m/2"):
        names.resolve("Paris")


def test_names_are_found_without_and_with_an_index():
    identifiers = [f"/m/{i}" for i in range(40)]
    labels = [f"name {i % 25}" for i in range(40)]
    names = Names("entity", identifiers, labels)
    assert Names("entity", Names("entity", identifiers)).find("/m/7") == 7
    assert Names("entity", tuple(identifiers)).find("/m/7") == 7
    for _ in range(2):  # an index is made somewhere on the way
        for i in range(40):
            shared = [j for j in range(40) if labels[j] == labels[i]]
            assert names.find(identifiers[i]) == i
            assert names.find(names.unique(i)) == i
            assert (names.unique(i) == labels[i]) == (len(shared) == 1)
            if len(shared) > 1:
                with pytest.raises(DataError, match="is ambiguous, expected one of"):
                    names.find(labels[i])
        with pytest.raises(DataError, match="unknown entity 'nobody'"):
            names.find("nobody")


ENTITIES = Names(
    "entity",
    ["/m/1", "/m/2", "/m/3", "/m/4", "/m/5"],
    ["Barack Obama", "Michelle Obama", "FARGO", "Fargo", "republic"],
)


@pytest.mark.parametrize(
    ("name", "found"),
    [("barack obama", 0), ("Republic", 4), ("FARGO", 2), ("Fargo", 3), ("5", 4)],
)
def test_case_matters_only_if_it_has_to(name, found):
    assert ENTITIES.resolve(name) == found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fargo", "entity 'fargo' is ambiguous, expected one of /m/3, /m/4"),
        ("obama", "unknown entity 'obama', nearest are Barack Obama, Michelle Obama"),
        ("barak obama", "unknown entity 'barak obama', nearest are Barack Obama"),
        ("FARGOO", "unknown entity 'FARGOO', nearest are Fargo"),
        ("", "unknown entity ''"),
        ("Barack Obama (/m/1)", "unknown entity"),
    ],
)
def test_entities_that_do_not_resolve(name, message):
    with pytest.raises(DataError) as caught:
        ENTITIES.resolve(name)
    assert message in str(caught.value)


def test_unique_names_resolve_to_their_ids():
    labels = ["Paris", "Paris", "Rome", "Paris (/m/2)"]
    names = Names("entity", ["/m/1", "/m/2", "/m/3", "/m/4"], labels)
    unique = [names.unique(i) for i in range(3)]
    assert unique == ["Paris (/m/1)", "Paris (/m/2)", "Rome"]
    assert [names.resolve(name) for name in unique[::2]] == [0, 2]
    assert names.resolve("Paris (/m/2)") == 3  # a label, before all else


def test_repeated_names_without_identifiers_are_ambiguous():
    names = Names("entity", ["Paris", "Rome", "Paris"])
    assert names.resolve("Rome") == 1
    with pytest.raises(DataError, match=r"ambiguous, .* the id 0, the id 2"):
        names.resolve("Paris")
    assert names.unique(2) == "Paris"


def test_shortened_names_stay_different():
    assert shorten(["<http://a/b.c>", "<http://a/d.c>", "c", "http://x/a/b.c"]) == [
        "http://a/b.c",
        "d.c",
        "c",
        "x/a/b.c",
    ]


def test_networkx_export_has_names_and_numbers():
    kbs, _ = read_kb(
        [("Ada", "spouse", "Ben"), ("Ada", "knows", "Ben"), ("Ben", "knows", "Ben")],
        numerical=[("Ada", "born", 1950)],
        min_entities=1,
    )
    graph = to_networkx(kbs["train"])
    assert isinstance(graph, nx.MultiDiGraph)
    assert sorted(graph.edges(keys=True)) == [
        ("Ada", "Ben", "knows"),
        ("Ada", "Ben", "spouse"),
        ("Ben", "Ben", "knows"),
    ]
    assert graph.nodes["Ada"] == {"name": "Ada", "born": 1950.0}
    assert graph.nodes["Ben"] == {"name": "Ben"}


def typed_graph():
    data = HeteroData()
    data["person"].num_nodes = 4
    data["person"].name = ["Ada", "Ben", "Cy", "Di"]
    data["person"].x = torch.tensor([[1950.0], [1960], [torch.nan], [1980]]).double()
    data["person"].attribute_names = ["year"]
    data["town"].num_nodes = 2
    data["town"].name = ["Ost", "West"]
    data["town"].x = torch.tensor([[1.0, 1200], [2, 1300]]).double()
    data["town"].attribute_names = ["size", "year"]
    edges = {
        ("person", "lives_in", "town"): [[0, 1, 3], [0, 0, 1]],
        ("person", "likes", "person"): [[0, 2], [1, 3]],
        ("person", "likes", "town"): [[1], [1]],
    }
    for edge_type, index in edges.items():
        data[edge_type].edge_index = torch.tensor(index)
        data[edge_type].edge_label_index = torch.tensor(index)[:, :1]
    return data


def test_several_node_types_become_one_entity_space_and_back():
    data = typed_graph()
    kb = unify_types(data)
    validate_kb(kb)
    assert named(kb, "edge_index") == [
        ("Ada", "lives_in", "Ost"),
        ("Ben", "lives_in", "Ost"),
        ("Di", "lives_in", "West"),
        ("Ada", "person.likes.person", "Ben"),
        ("Cy", "person.likes.person", "Di"),
        ("Ben", "person.likes.town", "West"),
    ]
    assert kb.attribute_names == ["year", "size"]
    assert kb["entity"].x[4].tolist() == [1200.0, 1.0]
    assert kb["entity"].type.tolist() == [0, 0, 0, 0, 1, 1]
    back = split_types(kb)
    for store, twin in zip(data.stores[1:], back.stores[1:]):
        if "x" in store and store["name"][0] == "Ost":
            # Columns come back in the order of the knowledge base.
            order = [store.attribute_names.index(n) for n in twin.attribute_names]
            store.x = store.x[:, order]
            store.attribute_names = twin.attribute_names
    assert_equal(data, back)


def test_negative_labels_are_not_asked_about():
    data = typed_graph()
    for edge_type in data.edge_types:
        del data[edge_type].edge_label_index
    train, _, _ = RandomLinkSplit(
        num_val=0, num_test=0, neg_sampling_ratio=1.0, edge_types=data.edge_types
    )(data)
    kb = unify_types(train)
    assert sorted(named(kb, "edge_label_index")) == sorted(named(kb, "edge_index"))


def test_names_are_made_where_there_are_none():
    data = typed_graph()
    del data["town"].name
    kb = unify_types(data, attributes={"person": ["year"]})
    assert kb["entity"].name[4:] == ["town 0", "town 1"]
    assert kb.attribute_names == ["year"]
    with pytest.raises(DataError, match=r"data\['town'\].x must have 1 columns"):
        unify_types(data, attributes={"town": ["size"]})
    with pytest.raises(DataError, match="no node types"):
        split_types(read_kb([("a", "r", "b")])[0]["train"])


def spoil(change):
    kbs, _ = read_kb([("a", "r", "b")], numerical=[("a", "n", 1)], min_entities=1)
    data = copy.copy(kbs["train"])
    change(data)
    return data


EDGE = ("entity", "r", "entity")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: setattr(d["entity"], "num_nodes", 3), "name must have 3 entries"),
        (lambda d: d["entity"].pop("name"), "name must be a list of strings"),
        (lambda d: setattr(d["entity"], "identifier", ["q", "q"]), "must not repeat"),
        (lambda d: setattr(d["entity"], "x", torch.zeros(2, 2)), r"shape \(2, 1\)"),
        (
            lambda d: setattr(d["entity"], "x", torch.zeros(2, 1).long()),
            "floating-point",
        ),
        (lambda d: d["entity"].x.fill_(torch.inf), "must be finite"),
        (
            lambda d: setattr(d, "attribute_names", "n"),
            "attribute_names must be a list",
        ),
        (lambda d: setattr(d[EDGE], "edge_index", torch.ones(2, 1)), "type int64"),
        (lambda d: d[EDGE].edge_index.fill_(2), "must lie in 0 to 1"),
        (lambda d: d[EDGE].pop("edge_label_index"), "edge_label_index must be"),
        (
            lambda d: setattr(d[EDGE], "edge_index", torch.zeros(1, 2).long()),
            r"\[1, 2\]",
        ),
        (lambda d: setattr(d["town"], "num_nodes", 3), "'entity' alone"),
    ],
)
def test_validation_says_what_is_wrong(change, message):
    data = spoil(change)
    with pytest.raises(DataError, match=message):
        validate_kb(data)


def test_validation_accepts_what_is_right():
    assert find_problems(spoil(lambda data: None)) == []
    assert find_problems(None) == ["expected a HeteroData (got NoneType)"]


def test_vocabulary_of_a_knowledge_base():
    kbs, _ = read_kb([("a", "x/r", "b")], numerical=[("a", "n", 1)], min_entities=1)
    names = Vocabulary.of(kbs["train"])
    assert names.entities.resolve("b") == 1
    assert names.relations.resolve("r") == 0
    assert names.attributes.resolve("n") == 0


def test_nodes_that_share_a_name_are_told_apart():
    data = HeteroData()
    data["hero"].name, data["city"].name = ["Paris", "Hector"], ["Troy", "Paris"]
    data["hero"].num_nodes = data["city"].num_nodes = 2
    data["hero", "lives_in", "city"].edge_index = torch.tensor([[0, 1], [0, 0]])
    kb = unify_types(data)
    names = Vocabulary.of(kb).entities
    assert names.unique(0) == "Paris (hero 0)"
    assert names.resolve("city 1") == 3
    assert to_networkx(kb).number_of_nodes() == 4
    data["hero"].name = ["Aeneas", "Hector"]
    assert "identifier" not in unify_types(data)["entity"]


@pytest.mark.parametrize(
    "names",
    [
        ["km/h", "approx.", "No. of staff", "ratio 1:2"],
        ["<5", "5"],
        ["<5>", "5"],
        ["user.likes.item", "user.owns.item"],
    ],
)
def test_names_that_are_no_paths_stay(names):
    assert shorten(names) == names


def test_endings_are_never_empty():
    assert shorten(["http://a/b/", "foaf:age", "/x/y"]) == ["b/", "age", "y"]


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        (([0, 1], [0, 1], [1, 0]), r"relations must lie in 0 to 0 \(got 0 to 1\)"),
        (([0, 2], [0, 0], [1, 0]), r"heads must lie in 0 to 1"),
        (([0], [0], [-1]), r"tails must lie in 0 to 1"),
        (([0], [0, 0], [1, 1]), r"equally many \(got \[1, 2, 2\]\)"),
    ],
)
def test_ids_that_do_not_exist_are_refused(triples, message):
    columns = tuple(map(torch.tensor, triples))
    with pytest.raises(ValueError, match=message):
        make_kb(["a", "b"], ["r"], columns)
    some = make_kb(["a", "b"], ["r"], tuple(torch.tensor([[0], [0], [1]])))
    with pytest.raises(ValueError, match=message):
        ask(some, columns)


def shop_graph():
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = 2, 2
    data["user", "likes", "item"].edge_index = torch.tensor([[0, 1], [0, 1]])
    return data


def test_identifiers_of_several_types_are_kept():
    data = shop_graph()
    data["user"].identifier = ["u7", "u9"]
    assert unify_types(data)["entity"].identifier == ["u7", "u9", "item 0", "item 1"]


def test_positive_edges_of_a_split_are_asked_about():
    data = shop_graph()
    data["user", "likes", "item"].pos_edge_label_index = torch.tensor([[0], [1]])
    data["user", "likes", "item"].neg_edge_label_index = torch.tensor([[1], [0]])
    store = unify_types(data)["entity", "likes", "entity"]
    assert store.edge_label_index.tolist() == [[0], [3]]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"user": "height"}, "list of different names .got 'height'"),
        ({"user": ["h", "h"]}, "list of different names"),
        ({"shop": ["h"]}, "names the node type 'shop'"),
    ],
)
def test_attributes_of_several_types_are_checked(attributes, message):
    with pytest.raises(DataError, match=message):
        unify_types(shop_graph(), attributes)


def test_edges_need_their_node_types():
    data = shop_graph()
    data["user", "buys", "thing"].edge_index = torch.tensor([[0], [0]])
    with pytest.raises(DataError, match="names the node type 'thing', expected one of"):
        unify_types(data)


def test_homogeneous_graphs_keep_names_and_numbers():
    data = Data(
        edge_index=torch.tensor([[0], [1]], dtype=torch.int32),
        edge_type=torch.tensor([0], dtype=torch.int32),
        x=torch.tensor([[180.0], [170.0]]),
        name=["Ada", "Ben"],
        attribute_names=["height"],
        num_nodes=2,
    )
    kb = as_kb(data)
    assert kb["entity"].name == ["Ada", "Ben"]
    assert kb["entity"].x.tolist() == [[180.0], [170.0]]
    assert kb.attribute_names == ["height"]
    data.name = ["Ada"]
    with pytest.raises(DataError, match=r"'name' must have 2 entries \(got 1\)"):
        as_kb(data)
    with pytest.raises(DataError, match="must have edge_index, edge_type and num"):
        as_kb(Data(edge_type=torch.tensor([0]), num_nodes=2))


def test_numbers_whose_squares_are_none_are_refused():
    x = torch.tensor([[1.0], [1e200]], dtype=torch.double)
    kb = make_kb(["a", "b"], ["r"], tuple(torch.tensor([[0], [0], [1]])), x, ["mass"])
    with pytest.raises(DataError, match=r"must be at most 1e\+150, .* \(see 'mass'\)"):
        validate_kb(kb)


# --- what a split of PyG asks about ----------------------------------------------


def random_graph(kinds):
    """A graph with the relations 'buys' and 'likes' between two kinds of nodes."""
    generator = torch.Generator().manual_seed(0)
    data, (first, last) = HeteroData(), (kinds[0], kinds[-1])
    for kind in kinds:
        data[kind].num_nodes = 20
        data[kind].name = [f"{kind}{i}" for i in range(20)]
    for relation in ("buys", "likes"):
        pairs = torch.randperm(400, generator=generator)[:60]
        edges = torch.stack([pairs // 20, pairs % 20])
        data[first, relation, last].edge_index = edges
    return data


@pytest.mark.parametrize("kinds", [["user", "item"], ["user"], ["entity"]])
@pytest.mark.parametrize(
    "choices",
    [{}, {"split_labels": True}, {"neg_sampling_ratio": 0.0}, {"stale": True}],
)
def test_a_split_of_one_relation_asks_about_nothing_else(kinds, choices):
    data, choices = random_graph(kinds), dict(choices)
    asked, other = data.edge_types
    if choices.pop("stale", False):  # an older split asked about these
        for edge_type in (asked, other):
            data[edge_type].edge_label_index = data[edge_type].edge_index[:, :7]
    splits = RandomLinkSplit(
        num_val=0.2, num_test=0.3, edge_types=[asked], rev_edge_types=None, **choices
    )(data)
    for split, size in zip(splits, (30, 12, 18)):
        before = copy.deepcopy(split)
        kb = as_kb(split)
        assert_equal(split, before)
        validate_kb(kb)
        key = "pos_edge_label_index" if choices.get("split_labels") else None
        wanted = split[asked][key or "edge_label_index"][:, :size]  # positives first
        shift = torch.tensor([[0], [20 * (len(kinds) - 1)]])
        head, rel, tail = flat_triples(kb, "edge_label_index")
        assert torch.equal(torch.stack([head, tail]), wanted + shift)
        assert (rel == 0).all()
        assert len(flat_triples(kb)[0]) == 60 + split[asked].edge_index.size(1)
        assert kb["entity"].name == [name for kind in kinds for name in data[kind].name]
        assert as_kb(kb) is kb
        if kinds == ["entity"]:
            assert_equal(as_kb(copy.copy(kb)), kb)


@pytest.mark.parametrize("kinds", [["user", "item"], ["entity"]])
def test_relations_without_an_edge_label_index(kinds):
    data = random_graph(kinds)
    second = data.edge_types[1]
    _, rel, _ = flat_triples(as_kb(data), "edge_label_index")
    assert rel.bincount().tolist() == [60, 60]  # a training graph asks about all
    data[second].edge_label_index = data[second].edge_index[:, :3]
    _, rel, _ = flat_triples(as_kb(data), "edge_label_index")
    assert rel.bincount().tolist() == [0, 3]
    data[second].edge_label = torch.ones(4)
    with pytest.raises(DataError, match=r"edge_label must have the shape \[3\]"):
        as_kb(data)


def test_homogeneous_splits_ask_about_their_labels():
    data = Data(
        edge_index=random_graph(["entity"])["entity", "buys", "entity"].edge_index,
        edge_type=torch.zeros(60, dtype=torch.long),
        num_nodes=20,
    )
    for choices in ({}, {"split_labels": True}, {"neg_sampling_ratio": 0.0}):
        splits = RandomLinkSplit(num_val=0.2, num_test=0.3, **choices)(data)
        for split, size in zip(splits, (30, 12, 18)):
            kb = as_kb(split)
            key = "pos_edge_label_index" if "split_labels" in choices else None
            wanted = split[key or "edge_label_index"][:, :size]
            assert torch.equal(kb["entity", "0", "entity"].edge_label_index, wanted)
            assert torch.equal(kb["entity", "0", "entity"].edge_index, split.edge_index)
    with pytest.raises(DataError, match=r"relations of edge_label_index are unknown"):
        as_kb(splits[1], 2)
    splits[1].edge_type[0] = 1
    with pytest.raises(DataError, match=r"relations of edge_label_index are unknown"):
        as_kb(splits[1])


# --- numbers without names -------------------------------------------------------


def graph_with_numbers(kinds, x):
    data = random_graph(kinds)
    data[kinds[-1]].x = x
    return data


X = torch.arange(40.0).view(20, 2)


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        (["user", "item"], ["item.x0", "item.x1"]),
        (["user"], ["x0", "x1"]),
        (["entity"], ["x0", "x1"]),
    ],
)
def test_columns_without_names_are_named_aloud(kinds, names):
    data = graph_with_numbers(kinds, X.clone().requires_grad_())
    where = f"data[{kinds[-1]!r}]"
    with pytest.warns(UserWarning, match="have no names, they are called") as caught:
        kb = as_kb(data)
    assert [str(warning.message).count(where) for warning in caught] == [2]
    assert kb.attribute_names == names
    assert torch.equal(kb["entity"].x[-20:], X.double())
    assert not kb["entity"].x.requires_grad
    assert data[kinds[-1]].x.requires_grad
    assert as_kb(kb) is kb
    data[kinds[-1]].attribute_names = ["a", "b"]
    assert as_kb(data).attribute_names == ["a", "b"]
    data[kinds[-1]].attribute_names = []
    assert as_kb(data)["entity"].x.size(1) == 0


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (torch.ones(20, 2, dtype=torch.long), r"its type is torch\.int64"),
        (torch.ones(20, 2, dtype=torch.bool), r"its type is torch\.bool"),
        (torch.ones(20, 65), "it has 65 columns"),
        (torch.ones(20), "it is not a dense matrix"),
        (torch.eye(20).to_sparse(), "it is not a dense matrix"),
    ],
)
@pytest.mark.parametrize("kinds", [["user", "item"], ["entity"]])
def test_columns_that_are_hardly_numbers_are_left_out_aloud(kinds, x, reason):
    with pytest.warns(UserWarning, match=f"x is not used, because {reason}"):
        kb = as_kb(graph_with_numbers(kinds, x))
    assert kb["entity"].x.size(1) == len(kb.attribute_names) == 0


def test_columns_of_homogeneous_graphs(recwarn):
    data = Data(
        edge_index=torch.tensor([[0], [1]]), edge_type=torch.tensor([0]), num_nodes=2
    )
    data.x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    assert as_kb(data).attribute_names == ["x0"]
    assert "data.x have no names" in str(recwarn.pop(UserWarning).message)
    data.attribute_names = ["height"]
    assert as_kb(data)["entity"].x.tolist() == [[1.0], [2.0]]
    data.x = data.x.detach().long()
    assert as_kb(data).attribute_names == ["height"]  # named on purpose
    data.attribute_names = []
    assert as_kb(data).attribute_names == []
    assert not recwarn.list
    del data.attribute_names
    assert as_kb(data).attribute_names == []
    assert "data.x is not used" in str(recwarn.pop(UserWarning).message)


def test_repeated_relation_names_are_refused():
    triples = tuple(torch.tensor([[0, 0], [0, 1], [1, 1]]))
    with pytest.raises(
        ValueError, match=r"'relations' must not repeat \(got 'r' twice"
    ):
        make_kb(["a", "b"], ["r", "r"], triples)


@pytest.mark.parametrize("as_array", [torch.tensor, np.array])
def test_ids_are_checked(as_array):
    good = as_array([0, 2, 1])
    check_ids({"heads": (good, 3), "tails": (good, 4), "none": (good, 3)})
    check_ids({"heads": (good[:0], 0)})
    for bad, number, message in (
        ([0, 3], 3, r"ids of heads must lie in 0 to 2 \(got 0 to 3\)"),
        ([0, -1], 3, r"ids of heads must lie in 0 to 2 \(got -1 to 0\)"),
        ([0.0, 1.0], 3, r"ids of heads must be integers \(got .*float"),
        ([True, False], 3, r"ids of heads must be integers \(got .*bool"),
    ):
        with pytest.raises(ValueError, match=message):
            check_ids({"heads": (as_array(bad), number)})
    with pytest.raises(ValueError, match=r"equally many \(got \[3, 2\]\)"):
        check_ids({"heads": (good, 3), "tails": (good[:2], 3)})
