"""All sections on one page that needs nothing but itself."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from torch_geometric.data import HeteroData

from kblrn_pyg import __version__
from kblrn_pyg.data import Vocabulary, flat_triples
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.evaluation import RankTable, Report, evaluate
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.plotting.words import short_names
from kblrn_pyg.report.curve import curve_section
from kblrn_pyg.report.examples import examples_section
from kblrn_pyg.report.html import Html, Section, element
from kblrn_pyg.report.measures import metrics_section, tiles
from kblrn_pyg.report.numbers import numbers_section, with_numbers
from kblrn_pyg.report.relations import relations_section
from kblrn_pyg.report.rules import rules_section
from kblrn_pyg.report.settings import settings_section
from kblrn_pyg.runs import Settings, Splits, other_answers

_EXPERTS = ("latent", "relational", "numerical")
_RANKED = ("val", "test")


def report_page(
    path: PathLike,
    model: KBLRN,
    splits: Splits,
    settings: Settings,
    num_examples: int = 6,
    max_relations: int = 6,
    seed: int = 0,
    progress: bool = False,
) -> str:
    r"""Returns a page of HTML about a run, which needs no other file.

    It is the same page whenever it is made of the same run. What a model has
    not, such as rules without a relational expert, is left out.

    Args:
        path (str): The folder of the run.
        model (KBLRN): Its model.
        splits (dict): The splits of its data set.
        settings (dict): Its settings.
        num_examples (int, optional): How many test queries are shown with
            their answers. (default: :obj:`6`)
        max_relations (int, optional): Of how many relations the rules and the
            numerical differences are shown, those with the most test triples.
            (default: :obj:`6`)
        seed (int, optional): The seed of the choice of test queries.
            (default: :obj:`0`)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
    """
    for name, value in (
        ("num_examples", num_examples),
        ("max_relations", max_relations),
    ):
        if value < 0:
            raise ValueError(f"'{name}' must not be negative (got {value})")
    train, frequent = splits["train"], frequent_relations(splits)
    tables = {split: _ranks(model, splits, split, progress) for split in _RANKED}
    reports = {split: Report.of(table) for split, table in tables.items() if len(table)}
    numerical = with_numbers(model, frequent)[:max_relations]
    names = Vocabulary.of(train).relations.identifiers
    short = dict(zip(names, short_names(names)))
    known = other_answers(splits, "train")
    sections = [
        metrics_section(reports) if reports else None,
        curve_section(Path(path)),
        relations_section(reports["test"], short) if "test" in reports else None,
        examples_section(
            model, tables["test"], known, short, num_examples, seed, progress
        ),
        rules_section(model, train, frequent[:max_relations], short, progress),
        numbers_section(model, train, numerical, short, progress),
        settings_section(settings),
    ]
    title = f"KBLRN on {Path(settings['dataset']).name}"
    header = _header(title, model, train, reports.get("test"))
    return _page(title, header, [one for one in sections if one is not None])


def frequent_relations(splits: Splits) -> list[int]:
    r"""Returns all relations, those with the most test triples first.

    Args:
        splits (dict): The splits.
    """
    train, test = splits["train"], splits["test"]
    counts = [
        (-test[kind].edge_label_index.size(1), -train[kind].edge_index.size(1))
        for kind in train.edge_types
    ]
    return sorted(range(len(counts)), key=counts.__getitem__)


def _ranks(model: KBLRN, splits: Splits, split: str, progress: bool) -> RankTable:
    others = other_answers(splits, split)
    return evaluate(model, splits[split], others, progress=progress)


def _header(
    title: str, model: KBLRN, train: HeteroData, report: Report | None
) -> list[Html]:
    having = [name for name in _EXPERTS if getattr(model, name) is not None]
    experts = " and ".join([", ".join(having[:-1]), having[-1]][len(having) == 1 :])
    facts = [
        f"{model.num_nodes:,} entities",
        f"{model.num_relations:,} relations",
        f"{len(flat_triples(train)[0]):,} training triples",
    ]
    if model.relational is not None:
        facts.append(f"{len(model.relational.features.rules):,} rules")
    if model.numerical is not None:
        facts.append(f"{len(model.numerical.attribute):,} numerical features")
    facts.append(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    plural = "" if len(having) == 1 else "s"
    header = [
        element("h1", title),
        element("p", f"Model with the {experts} expert{plural}", class_="lead"),
        element("p", " · ".join(facts), class_="note"),
    ]
    if report is not None:
        header.append(tiles(report.overall))
    return header


def _page(title: str, header: list[Html], sections: Sequence[Section]) -> str:
    links = [element("a", one.title, href=f"#{one.id}") for one in sections]
    shown = [
        element("section", element("h2", one.title), one.content, id=one.id)
        for one in sections
    ]
    footer = f"Made by kblrn_pyg {__version__}: kblrn report"
    body = element(
        "body",
        element("header", *header, element("nav", *links, aria_label="Sections")),
        element("main", *shown),
        element("footer", footer),
        element("script", Html(_file("page.js"))),
    )
    return f"<!doctype html>\n{element('html', _head(title), body, lang='en')}\n"


def _head(title: str) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width"),
        # Nothing is fetched, and no script runs but the one of this page.
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Html(_file("page.css"))),
    )


def _policy() -> str:
    digest = hashlib.sha256(_file("page.js").encode()).digest()
    script = f"'sha256-{base64.b64encode(digest).decode()}'"
    return (
        f"default-src 'none'; script-src {script}; style-src 'unsafe-inline'; "
        "img-src data:"
    )


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
