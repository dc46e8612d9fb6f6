"""What each table of the paper needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kblrn_pyg.training.benchmark_recipes import BenchmarkRecipe
from reproduction import systems
from reproduction.job import Job, trained_on

_FOUR = ("mr", "mrr", "hits@1", "hits@10")
_FIVE = ("mr", "mrr", "hits@3", "hits@5", "hits@10")


@dataclass(frozen=True)
class Row:
    r"""A row of a table.

    Args:
        name (str): What the paper calls it.
        experts (str): The instance of the model.
        change (dict, optional): Further arguments of :class:`Job`.
        recipes (tuple, optional): The recipes it makes sense for.
        smallest (bool, optional): Whether only the first of the embedding sizes
            is meant. (default: :obj:`False`)
        system (BenchmarkRecipe, optional): The recipe of its own that another system
            has, in place of recipe modern. (default: :obj:`None`)
    """

    name: str
    experts: str
    change: dict[str, Any] = field(default_factory=dict)
    recipes: tuple[str, ...] = ("paper", "modern")
    smallest: bool = False
    system: BenchmarkRecipe | None = None

    def recipe(self, recipe: BenchmarkRecipe, dataset: str) -> BenchmarkRecipe | None:
        r"""Returns how the row is trained, if a recipe makes sense for it.

        Args:
            recipe (BenchmarkRecipe): The recipe.
            dataset (str): The data set to judge on.
        """
        if recipe.name not in self.recipes:
            return None
        return (self.system or recipe).on(trained_on(dataset))

    def choices(self, recipe: BenchmarkRecipe) -> Iterator[dict[str, Any]]:
        r"""Returns the models to choose from by validation.

        Args:
            recipe (BenchmarkRecipe): How they are trained.
        """
        usual = {
            "experts": self.experts,
            "numerical": "rbf",
            "threshold": 0.9,
            "ignore_unknown": False,
            "permuted": False,
            "negatives": recipe.negatives,
            "infers": False,
        }
        if "l" not in self.experts:
            yield {**usual, "hidden_channels": 0, **self.change}
            return
        for scorer in recipe.scorers:
            for size in recipe.sizes[: 1 if self.smallest else None]:
                settings = {**usual, "hidden_channels": size, "scorer": scorer}
                yield settings | self.change


@dataclass(frozen=True)
class Table:
    r"""A table of the paper.

    Args:
        title (str): Its title.
        datasets (tuple): The data sets it is about.
        rows (tuple): The rows that have to be trained.
        metrics (tuple): Its columns.
        recipes (tuple): The recipes it makes sense for.
    """

    title: str
    datasets: tuple[str, ...]
    rows: tuple[Row, ...]
    metrics: tuple[str, ...] = _FOUR
    recipes: tuple[str, ...] = ("paper", "modern")

    def shortened(self) -> "Table":
        """The same with other systems that take seconds, as a test."""
        rows = (
            replace(row, system=row.system and row.system.shortened())
            for row in self.rows
        )
        return replace(self, rows=tuple(rows))


INSTANCES = tuple(
    Row(f"KB{experts}", experts) for experts in ("l", "r", "lr", "ln", "rn", "lrn")
)
# Beyond the paper: the best evidence, without embeddings and beside them.
_EVIDENCE = tuple(
    Row(f"KB{experts}", experts, recipes=("modern",)) for experts in ("e", "le", "lrne")
)
# Recipe modern chooses a scorer for KBl: these are for the paper's recipe alone.
_TRANSE = Row("TransE", "l", {"scorer": "transe"}, ("paper",))
_COMPLEX = Row("ComplEx", "l", {"scorer": "complex"}, ("paper",))
# In the paper, DistMult is what KBl is made of: the same training.
_DISTMULT = Row("DistMult", "l", {"scorer": "distmult"}, ("paper",))
# In recipe modern, ComplEx is.
_MODERN_COMPLEX = Row("ComplEx", "l", {"scorer": "complex"}, ("modern",))
_KBLR, _KBLRN = INSTANCES[2], INSTANCES[5]
# Beyond the paper: several functions of each difference, where the numbers of a tenth
# of a relation's triples are known.
_LAYER = {"numerical": "layer", "threshold": 0.1}


def _layer(name: str, experts: str = "lrn", **change: Any) -> Row:
    return Row(name, experts, _LAYER | change, recipes=("modern",))


# Who has a number does not count, which permuting would leave as it is.
_PERMUTED_VALUES = {"ignore_unknown": True, "permuted": True}
_BEST = _layer("KBlrne, layers", "lrne"), _layer("KBlrneo, layers", "lrneo")


def _beside_loops() -> Iterator[Row]:
    """Models with an expert that knows whether a candidate is the entity itself."""
    for experts in ("lr", "r"):
        yield Row(f"KB{experts}o", f"{experts}o", recipes=("modern",))
        name, experts = f"KB{experts}no", f"{experts}no"
        yield Row(name, experts, recipes=("modern",))
        yield _layer(f"{name}, layers", experts)
        yield _layer(f"{name}, layers, permuted", experts, permuted=True)


def _system(
    name: str, system: BenchmarkRecipe, experts: str = "l", **change: Any
) -> Row:
    """A row of another system, by its own recipe."""
    return Row(name, experts, change, ("modern",), system=system)


# Without rules, with rules as features, and with rules in the loss.
_RULES_IN_COMPLEX = (
    _MODERN_COMPLEX,
    Row("ComplEx, rules as features", "lr", {"scorer": "complex"}, ("modern",)),
    _system("ASR-ComplEx", systems.ASR_COMPLEX),
)
_RULES_IN_TRANSE = (
    _system("TransE", systems.TRANSE),
    _system("TransE, rules as features", systems.TRANSE, "lr"),
    _system("Kale-pre", systems.TRANSE, infers=True),
    _system("Kale-joint", systems.KALE_JOINT),
)

TABLES = {
    "benchmarks": Table(
        "FB15k-237 and FB15k",
        ("FB15k-237", "FB15k"),
        (
            _TRANSE,
            _DISTMULT,
            _COMPLEX,
            _system("Node+LinkFeat", systems.NODE_LINK, "r+node", max_hops=1),
            _system("R-GCN+", systems.RGCN_PLUS),
            _system("ConvE", systems.CONVE),
            *INSTANCES,
            *_EVIDENCE,
            *_BEST,
        ),
    ),
    "numerical": Table(
        "FB15k-237-num and FB15k-num: relations with numerical features",
        ("FB15k-237-num", "FB15k-num"),
        (_TRANSE, _DISTMULT, *INSTANCES, *_EVIDENCE, *_BEST),
    ),
    "rules": Table(
        "WN18 and FB122 with the rules provided",
        ("WN18", "FB122"),
        (
            _system("TransE", systems.TRANSE),
            _system("TransH", systems.TRANSH),
            _system("TransR", systems.TRANSR),
            *_RULES_IN_TRANSE[2:],
            _MODERN_COMPLEX,
            _system("ASR-ComplEx", systems.ASR_COMPLEX),
            *INSTANCES[:3],
            *_EVIDENCE[:2],
            Row("KBleo", "leo", recipes=("modern",)),
        ),
        _FIVE,
    ),
    "penalties": Table(
        "Rules as features, or rules in the loss?",
        ("WN18", "FB122"),
        (*_RULES_IN_COMPLEX, *_RULES_IN_TRANSE),
        _FIVE,
        recipes=("modern",),
    ),
    "representations": Table(
        "Sign or RBF of the differences",
        ("FB15k-237-num",),
        (
            Row("sign", "lrn", {"numerical": "sign"}),
            Row("RBF", "lrn"),
            _layer("layer of RBFs"),
        ),
    ),
    "relations": Table(
        "Three relations with and without numerical features",
        ("FB15k-237",),
        (_KBLR, _KBLRN),
        ("mrr", "hits@10"),
    ),
    "cardinality": Table(
        "Queries that one entity completes, and that many do",
        ("FB15k-237-num",),
        (_KBLR, _KBLRN),
        ("mr", "mrr"),
    ),
    "features": Table(
        "The relational features that contributed most",
        ("FB15k-237",),
        (_KBLRN,),
    ),
    "usa": Table(
        "(United States of America, /location/location/contains, ?)",
        ("FB15k-237",),
        (_TRANSE, _KBLR, _KBLRN),
        ("auc_pr", "mr", "mrr"),
    ),
    "control": Table(
        "The literal control: true numbers, permuted numbers, no numbers",
        ("FB15k-237-num", "FB15k-num"),
        (
            _KBLRN,
            Row("KBlrn, permuted", "lrn", {"permuted": True}),
            _layer("KBlrn, layers"),
            _layer("KBlrn, layers, permuted", permuted=True),
            _layer("KBlrn, layers of values", ignore_unknown=True),
            _layer("KBlrn, layers of values, permuted", **_PERMUTED_VALUES),
            _KBLR,
            # Beside an expert that knows which entities a relation is about.
            _layer("KBrne, layers", "rne"),
            _layer("KBrne, layers, permuted", "rne", permuted=True),
            Row("KBre", "re", recipes=("modern",)),
            _BEST[0],
            _layer("KBlrne, layers, permuted", "lrne", permuted=True),
            Row("KBlre", "lre", recipes=("modern",)),
        ),
    ),
    "loops": Table(
        "The literal control beside loops",
        ("FB15k-237-num",),
        tuple(_beside_loops()),
        recipes=("modern",),
    ),
    "thresholds": Table(
        "How many triples of a relation must have both numbers, for layers",
        ("FB15k-237-num", "FB15k-237"),
        (
            *(
                _layer(f"KBrn, {threshold:.0%}", "rn", threshold=threshold)
                for threshold in (0.9, 0.5, 0.1, 0.02)
            ),
            INSTANCES[1],
        ),
        recipes=("modern",),
    ),
    "negatives": Table(
        "Negatives drawn for each triple, or once for a batch",
        ("FB15k-237", "FB15k-237-num"),
        tuple(
            Row(f"KBlrn, for {what}", "lrn", {"negatives": how}, smallest=True)
            for what, how in (("each triple", "triple"), ("a batch", "shared"))
        ),
        recipes=("paper",),
    ),
}

# Seeds behind the mean of a cell; one where nothing else is said.
_SEVERAL_SEEDS = {
    (dataset, experts): (0, 1, 2)
    for dataset in ("FB15k-237", "FB15k-237-num")
    for experts in ("lr", "lrn", "lrne")
}


def jobs_of(
    table: Table,
    recipe: BenchmarkRecipe,
    datasets: Sequence[str] | None = None,
    instances: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    rows: Sequence[str] | None = None,
) -> Iterator[Job]:
    r"""Returns the trainings that a table needs, the first seed first.

    Args:
        table (Table): The table.
        recipe (BenchmarkRecipe): How to train.
        datasets (sequence, optional): Only these, or others in their place.
            (default: :obj:`None`, all)
        instances (sequence, optional): Only these. (default: :obj:`None`, all)
        seeds (sequence, optional): Only these. (default: :obj:`None`, all)
        rows (sequence, optional): Only rows of these names.
            (default: :obj:`None`, all)
    """
    if recipe.name not in table.recipes:
        return
    for dataset in datasets or table.datasets:
        for seed in seeds or (0, 1, 2):
            for row in table.rows:
                if instances is not None and row.experts not in instances:
                    continue
                if rows is not None and row.name not in rows:
                    continue
                planned = seeds or _seeds(dataset, row)
                if seed not in planned:
                    continue
                if (own := row.recipe(recipe, dataset)) is None:
                    continue
                for choice in row.choices(own):
                    yield Job(trained_on(dataset), own, seed=seed, **choice)


def _seeds(dataset: str, row: Row) -> tuple[int, ...]:
    if row.change:
        return (0,)
    return _SEVERAL_SEEDS.get((dataset, row.experts), (0,))
