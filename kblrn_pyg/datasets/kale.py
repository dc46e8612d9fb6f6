"""WN18 and FB122, the data sets that include logical rules."""

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import ask, flat_triples
from kblrn_pyg.data.kale import infer, read_rule_lines
from kblrn_pyg.datasets.base import KBDataset
from kblrn_pyg.datasets.files import RawFile, split_files
from kblrn_pyg.datasets.freebase import LABELS, build_splits
from kblrn_pyg.datasets.names import COUNTS

_KALE = "https://raw.githubusercontent.com/iieir-km/KALE/master/datasets"


class _WithRules(KBDataset):
    """A data set with a rule file, in the format of KALE."""

    splits = ("train", "val", "test", "test-I", "test-II")

    def build(self, paths: dict[str, str]) -> dict[str, HeteroData]:
        kbs = build_splits(paths)
        rule_lines = read_rule_lines(paths["rules.txt"])
        for data in kbs.values():
            data.rule_lines = rule_lines
        inferred = infer(kbs["train"], rule_lines)
        head_index, rel_type, tail_index = flat_triples(kbs["test"], "edge_label_index")
        triples = zip(head_index.tolist(), rel_type.tolist(), tail_index.tolist())
        is_inferred = torch.tensor([triple in inferred for triple in triples])
        for split, part in (("test-I", ~is_inferred), ("test-II", is_inferred)):
            asked = head_index[part], rel_type[part], tail_index[part]
            kbs[split] = ask(kbs["test"], asked)
        return kbs


class WN18(_WithRules):
    r"""WN18 from `"Translating Embeddings for Modeling Multi-Relational Data"
    <https://papers.nips.cc/paper/5071-translating-embeddings-for-modeling
    -multi-relational-data>`_ with the 14 rules of `"Jointly Embedding Knowledge
    Graphs and Logical Rules" <https://aclanthology.org/D16-1019>`_: 40,943
    entities, 18 relations, 141,442 training, 5,000 validation and 5,000 test
    triples, 1,394 of them in Test-I and 3,606 in Test-II.

    Test-II is what the rules infer from the training triples, applied until
    nothing new follows. :obj:`data.rule_lines` holds the lines of the rule
    file.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"`, :obj:`"test"`,
            :obj:`"test-I"` (what the rules cannot infer) or :obj:`"test-II"`
            (what they can). (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    counts = COUNTS["WN18"]
    files = (
        *split_files(
            "WN18",
            f"{_KALE}/wn18/wn18_triples.{{}}",
            train="24c9b02dc57d3ae8ca8467ce355995edee7be8eddc3bd070ee34d3c6fc3c95eb",
            valid="13347bfb5e17d1cae003e0bfe29b4716d3ab748e8cfb6af997138d37da3a51dc",
            test="d22c19d176d4ba6a6f0d0c6bfce39ab3c16e3b20e1df6f9efe0d9ed86542fa10",
        ),
        RawFile(
            "WN18/rules.txt",
            f"{_KALE}/wn18/wn18_rule",
            "8ed8e88fe41506da3ab34dfb877ce890cdaa553e3cf498477282ab99b96f3187",
        ),
    )


class FB122(_WithRules):
    r"""FB122, the relations of FB15k about people, places and sports, with the 47
    rules of `"Jointly Embedding Knowledge Graphs and Logical Rules"
    <https://aclanthology.org/D16-1019>`_: 9,738 entities, 122 relations, 91,638
    training, 9,595 validation and 11,243 test triples, 5,057 of them in Test-I
    and 6,186 in Test-II.

    Test-II is what the rules infer from the training triples, applied until
    nothing new follows. :obj:`data.rule_lines` holds the lines of the rule
    file. 27 training triples of FB122 are test triples of FB15k: never mix
    the splits of the two.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"`, :obj:`"test"`,
            :obj:`"test-I"` (what the rules cannot infer) or :obj:`"test-II"`
            (what they can). (default: :obj:`"train"`)
        transform (callable, optional): A transform applied before every
            access. (default: :obj:`None`)
        pre_transform (callable, optional): A transform applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    counts = COUNTS["FB122"]
    files = (
        *split_files(
            "FB122",
            f"{_KALE}/fb122/fb122_triples.{{}}",
            train="26ecf8642cbdf70f5dfdfffa292c16fd12d7c293f2af35ade0ec6581e9d8e970",
            valid="f7e8bb3a8e68879eee0d17d0195600bef6c853e4b62adce368147a7fc79df91a",
            test="e229d12db978d8263796d081916396d4cc5909ab9b49b12e6f543549b3fd0aef",
        ),
        RawFile(
            "FB122/rules.txt",
            f"{_KALE}/fb122/fb122_rule",
            "71841afea04ad4cc00df62a52c53798e4b6dba5804d37240f279e7b879fd8231",
        ),
        LABELS,
    )
