"""The metrics of ranks as Markdown and as JSON."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.evaluation.metrics import Metrics
from kblrn_pyg.evaluation.ranks import ANSWERS, RankTable
from kblrn_pyg.frames import html_table, to_frame
from kblrn_pyg.table import format_table

_HEADER = ("ranks", "MR", "MRR", "hits@1", "hits@3", "hits@5", "hits@10", "AMR")
_SIDE_TITLES = {"head": "(?, r, t)", "tail": "(h, r, ?)"}
_ANSWER_TITLES = {"one": "ONE", "many": "MANY"}


@dataclass(frozen=True)
class Report:
    r"""The metrics of a :class:`RankTable`, overall and by group.

    Empty groups are left out.

    Args:
        overall (Metrics): The metrics of all ranks.
        by_side (dict): Those of the queries that ask for the :obj:`"head"`, and
            for the :obj:`"tail"`.
        by_answers (dict): Those of the queries that :obj:`"one"` entity
            completes, and that :obj:`"many"` do.
        by_relation (dict): Those of each relation, by its name, the relation
            with the most ranks first.
    """

    overall: Metrics
    by_side: dict[str, Metrics]
    by_answers: dict[str, Metrics]
    by_relation: dict[str, Metrics]

    @classmethod
    def of(cls, table: RankTable) -> "Report":
        r"""Computes the metrics of ranks.

        Args:
            table (RankTable): The ranks.
        """
        by_side = {side: table.metrics(table.mask(side=side)) for side in SIDES}
        by_answers = {kind: table.metrics(table.mask(answers=kind)) for kind in ANSWERS}
        return cls(
            table.metrics(),
            _without_empty(by_side),
            _without_empty(by_answers),
            _by_relation(table),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns plain dictionaries and numbers."""
        parts = {
            "by_side": self.by_side,
            "by_answers": self.by_answers,
            "by_relation": self.by_relation,
        }
        return {"overall": self.overall.to_dict()} | {
            title: {name: metrics.to_dict() for name, metrics in part.items()}
            for title, part in parts.items()
        }

    def to_frame(self) -> Any:
        """Returns a :class:`pandas.DataFrame` with a row for all ranks, and one for
        each group."""
        groups = self._groups()
        figures = [metrics.to_dict() for *_, metrics in groups]
        columns: dict[str, Any] = {"group": [group for group, *_ in groups]}
        columns["name"] = [name for _, name, _ in groups]
        columns |= {name: [one[name] for one in figures] for name in figures[0]}
        return to_frame(columns)

    def _repr_html_(self) -> str:
        rows = [(group, name, *_cells(one)) for group, name, one in self._groups()]
        return html_table(("group", "name", *_HEADER), rows)

    def _groups(self) -> list[tuple[str, str, Metrics]]:
        parts = {
            "side": self.by_side,
            "answers": self.by_answers,
            "relation": self.by_relation,
        }
        found = [("all", "all", self.overall)]
        for group, part in parts.items():
            found += [(group, name, metrics) for name, metrics in part.items()]
        return found

    def to_markdown(self, max_relations: int | None = None) -> str:
        r"""Returns a table of all ranks and their groups, and one of the relations.

        Args:
            max_relations (int, optional): The maximum number of relations to list;
                0 leaves out their table. (default: :obj:`None`, all)
        """
        rows = {"all": self.overall}
        rows |= {_SIDE_TITLES[name]: part for name, part in self.by_side.items()}
        rows |= {_ANSWER_TITLES[name]: part for name, part in self.by_answers.items()}
        text = _markdown_table("queries", rows)
        listed = dict(list(self.by_relation.items())[:max_relations])
        if listed:
            text += "\n" + _markdown_table("relation", listed)
        left_out = len(self.by_relation) - len(listed)
        if listed and left_out:
            text += f"\n{left_out:,} more relations are not listed.\n"
        return text


def to_markdown(table: RankTable, max_relations: int | None = None) -> str:
    r"""Returns the metrics of a rank table as Markdown.

    Args:
        table (RankTable): The ranks.
        max_relations (int, optional): See :meth:`Report.to_markdown`.
            (default: :obj:`None`)
    """
    return Report.of(table).to_markdown(max_relations)


def to_json(table: RankTable) -> dict[str, Any]:
    r"""Returns the metrics of a rank table as plain dictionaries and numbers.

    Args:
        table (RankTable): The ranks.
    """
    return Report.of(table).to_json()


def _without_empty(parts: dict[str, Metrics]) -> dict[str, Metrics]:
    return {name: metrics for name, metrics in parts.items() if metrics.count}


def _by_relation(table: RankTable) -> dict[str, Metrics]:
    order = np.argsort(table.relation, kind="stable")
    relations, begin = np.unique(table.relation[order], return_index=True)
    rows = dict(zip(relations.tolist(), np.split(order, begin[1:])))
    largest_first = sorted(rows, key=lambda relation: -len(rows[relation]))
    return {
        table.relations[relation]: Metrics.of(
            table.rank[rows[relation]], table.num_candidates[rows[relation]]
        )
        for relation in largest_first
    }


def _markdown_table(title: str, rows: dict[str, Metrics]) -> str:
    cells = [(name, *_cells(metrics)) for name, metrics in rows.items()]
    return format_table((title, *_HEADER), cells, markdown=True) + "\n"


def _cells(metrics: Metrics) -> list[str]:
    if not metrics.count:
        return ["0"] + ["-"] * (len(_HEADER) - 1)
    count, mean_rank, *others = vars(metrics).values()
    return [f"{count:,}", f"{mean_rank:,.1f}", *(f"{figure:.4f}" for figure in others)]
