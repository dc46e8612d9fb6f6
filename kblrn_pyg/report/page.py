"""All sections on a single page that needs no other file."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from kblrn_pyg import __version__
from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.evaluation import Report, evaluate
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.report.calibration import calibration_section
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.examples import examples_section
from kblrn_pyg.report.experts import expert_section
from kblrn_pyg.report.html import Html, Section, element, note
from kblrn_pyg.report.measures import metrics_section, relations_section, tiles
from kblrn_pyg.report.run import curve_section, settings_section
from kblrn_pyg.runs import Settings, Splits, other_answers


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
    r"""Returns a self-contained HTML page about a run.

    The same run always gives the same page. Each expert of the model can have its
    own section; see :meth:`~kblrn_pyg.report.expert_section`.

    Args:
        path (str): The folder of the run.
        model (KBLRN): Its model.
        splits (dict): The splits of its data set.
        settings (dict): Its settings.
        num_examples (int, optional): The number of test queries that are
            shown with their answers. (default: :obj:`6`)
        max_relations (int, optional): The maximum number of relations that the sections
            about experts show, those with the most test triples.
            (default: :obj:`6`)
        seed (int, optional): The seed for choosing test queries.
            (default: :obj:`0`)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
    """
    sizes = {"num_examples": num_examples, "max_relations": max_relations}
    for name, value in sizes.items():
        if value < 0:
            raise ValueError(f"'{name}' must not be negative (got {value})")
    context = Context(model, splits, max_relations, progress)
    tables = {
        split: evaluate(
            model, splits[split], other_answers(splits, split), progress=progress
        )
        for split in ("val", "test")
    }
    reports = {split: Report.of(table) for split, table in tables.items() if len(table)}
    test = reports.get("test")
    sections = [
        metrics_section(reports) if reports else None,
        curve_section(Path(path)),
        relations_section(test, context.short) if test else None,
        calibration_section(context),
        examples_section(context, tables["test"], num_examples, seed),
        *(expert_section(expert, context) for expert in model.experts.values()),
        settings_section(settings, model.instance),
    ]
    dataset = settings.get("dataset")
    title = f"KBLRN on {Path(dataset).name}" if dataset else "KBLRN"
    return _page(title, _header(title, context, test), _unique(sections))


def _unique(sections: Iterable[Section | None]) -> list[Section]:
    """Leaves out what is missing, and numbers identifiers that are repeated."""
    found, seen = [], Counter[str]()
    for one in filter(None, sections):
        seen[one.id] += 1
        number = seen[one.id]
        found.append(one if number == 1 else one._replace(id=f"{one.id}-{number}"))
    return found


def _header(title: str, context: Context, report: Report | None) -> list[Html]:
    model, having = context.model, list(context.model.experts)
    experts = " and ".join([", ".join(having[:-1]), having[-1]][len(having) == 1 :])
    facts = [
        f"{model.num_nodes:,} entities",
        f"{model.num_relations:,} relations",
        f"{len(flat_triples(context.train)[0]):,} training triples",
        *filter(None, (expert.extra_repr() for expert in model.experts.values())),
        f"{sum(p.numel() for p in model.parameters()):,} parameters",
    ]
    plural = "" if len(having) == 1 else "s"
    header = [
        element("h1", title),
        element("p", f"Model with the {experts} expert{plural}", class_="lead"),
        note(" · ".join(facts)),
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
