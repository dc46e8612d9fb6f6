"""The terms of an expert's score of a triple."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Fact = tuple[int, int, int]


class Ref(NamedTuple):
    r"""A reference to a name, which is filled in when a part is displayed.

    Args:
        kind (str): :obj:`"entity"`, :obj:`"relation"` or :obj:`"attribute"`.
        id (int): Its id.
    """

    kind: str
    id: int


Words = tuple[str | Ref, ...]


@dataclass(frozen=True)
class Part:
    r"""One of the terms of an expert's score of a triple.

    The code that displays parts (text, JSON, HTML, graphs, figures) does not depend
    on the expert.

    Args:
        contribution (float): What it adds to the score.
        words (tuple): Its description: strings, and :class:`Ref` in place of names.
        note (tuple, optional): How it comes about. (default: :obj:`()`)
        paths (tuple, optional): The known facts that it is based on, as paths:
            tuples of :obj:`(head, relation, tail)`. (default: :obj:`()`)
        own (bool, optional): Whether it holds only because the explained triple is
            a known fact. Training leaves such evidence out, while scores include
            it. (default: :obj:`False`)
        details (dict, optional): Additional plain values by name, for programs.
            (default: :obj:`{}`)
    """

    contribution: float
    words: Words
    note: Words = ()
    paths: tuple[tuple[Fact, ...], ...] = ()
    own: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
