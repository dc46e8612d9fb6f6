"""The parts that an expert's score of a triple is the sum of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Fact = tuple[int, int, int]


class Ref(NamedTuple):
    r"""Something that has a name, to be filled in where a part is shown.

    Args:
        kind (str): :obj:`"entity"`, :obj:`"relation"` or :obj:`"attribute"`.
        id (int): Its id.
    """

    kind: str
    id: int


Words = tuple[str | Ref, ...]


@dataclass(frozen=True)
class Part:
    r"""One of the reasons that an expert's score of a triple is the sum of.

    Whatever shows parts (text, JSON, HTML, graphs, pictures) knows nothing
    about the expert that they come from.

    Args:
        contribution (float): What it adds to the score.
        words (tuple): What it is: strings, and :class:`Ref` in place of names.
        note (tuple, optional): How it comes about. (default: :obj:`()`)
        paths (tuple, optional): The known facts that it rests on, as paths:
            tuples of :obj:`(head, relation, tail)`. (default: :obj:`()`)
        own (bool, optional): Whether it holds only because the asked triple is
            a known fact. Training leaves such evidence out, scores do not.
            (default: :obj:`False`)
        details (dict, optional): Further plain values by name, for programs.
            (default: :obj:`{}`)
    """

    contribution: float
    words: Words
    note: Words = ()
    paths: tuple[tuple[Fact, ...], ...] = ()
    own: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
