"""The neighbourhood of an entity, with names and numbers."""

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.names import last_segment
from kblrn_pyg.data.neighbourhood import Link, Neighbourhood, neighbourhood
from kblrn_pyg.data.words import in_words, short_names, value_text
from kblrn_pyg.plotting.fitting import fit, text_width
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.radial import (
    Points,
    bend_of,
    curve_points,
    free_spot,
    ring_places,
)
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE, PALE

# All in inches: the figure of one ring, its foot, a label, the length of its ring
# for an entity, the margins around the rings and around a text.
_SIZE = np.array([10.0, 7.4])
_FOOT = 0.45
_LABEL = 1.5
_ROOM = 2.0
_MARGIN = np.array([1.0, 0.6])
_PAD = 0.06

_MIDDLE_FONT, _FONT, _SMALL_FONT = 10.5, 9.0, 8.0


@with_fonts
def plot_fragment(
    data: HeteroData, entity: str, hops: int = 1, max_nodes: int = 12
) -> Figure:
    r"""Draws the neighbourhood of an entity (Figure 1 of the paper).

    Entities are labelled with their names and most informative numbers, arrows with
    the names of their relations. A note states how much is left out.

    Args:
        data (HeteroData): The knowledge base.
        entity (str): The entity in the middle, by name.
        hops (int, optional): The maximum distance to it. (default: :obj:`1`)
        max_nodes (int, optional): The maximum number of other entities to draw.
            (default: :obj:`12`)
    """
    drawn = neighbourhood(data, entity, hops, max_nodes)
    size = _SIZE * _scale(drawn)
    width, height = size + (0, _FOOT)
    figure = plt.figure(figsize=(width, height))
    # An inch of the figure is a unit of the axes.
    axis = figure.add_axes((0, _FOOT / height, 1, 1 - _FOOT / height))
    axis.set(xlim=(-size[0] / 2, size[0] / 2), ylim=(-size[1] / 2, size[1] / 2))
    touching = defaultdict(set)
    for link in drawn.links:
        touching[link.head].add(link.tail)
        touching[link.tail].add(link.head)
    places = ring_places(drawn.rings, touching, *(size / 2 - _MARGIN))
    boxes = _draw_entities(axis, data, drawn, places)
    _draw_links(axis, data, drawn, places, boxes)
    axis.axis("off")
    _write_notes(figure, drawn, hops)
    return figure


def _scale(drawn: Neighbourhood) -> float:
    """The factor by which a figure must be larger than by default."""
    outwards = drawn.rings[1:]
    scale = max(1.0, 0.8 * len(outwards))
    for i, ring in enumerate(outwards, start=1):
        length = np.pi * (_SIZE / 2 - _MARGIN).sum() * i / len(outwards)
        scale = max(scale, _ROOM * len(ring) / length)
    return scale


def _draw_entities(
    axis: Axes, data: HeteroData, drawn: Neighbourhood, places: Points
) -> dict[int, FancyBboxPatch]:
    names = Vocabulary.of(data)
    boxes = {}
    for entity, place in places.items():
        is_middle = entity == drawn.rings[0][0]
        font = _MIDDLE_FONT if is_middle else _FONT
        lines = fit(names.entities[entity], font, _LABEL, 2)
        for i, value in drawn.numbers[entity]:
            number = f" {value_text(names.attributes[i], value)}"
            words = in_words(last_segment(names.attributes[i]))
            available = _LABEL - text_width(number, font)
            lines.append(fit(words, font, available, 1)[0] + number)
        text = _write(axis, place, "\n".join(lines), font)
        text.set(color="white" if is_middle else "black", zorder=4)
        box = _extent(axis, text)
        boxes[entity] = FancyBboxPatch(
            box.p0,
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=BLUE if is_middle else PALE,
            edgecolor=BLUE,
            linewidth=0.8,
            zorder=3,
        )
        axis.add_patch(boxes[entity])
    return boxes


def _draw_links(
    axis: Axes,
    data: HeteroData,
    drawn: Neighbourhood,
    places: Points,
    boxes: dict[int, FancyBboxPatch],
) -> None:
    relations = short_names(Vocabulary.of(data).relations.identifiers)
    pairs: dict[frozenset[int], list[Link]] = defaultdict(list)
    for link in drawn.links:
        pairs[frozenset((link.head, link.tail))].append(link)
    used = {entity: box.get_bbox() for entity, box in boxes.items()}
    taken = list(used.values())
    for pair in pairs.values():
        for i, link in enumerate(pair):
            ends = places[link.head], places[link.tail]
            others = [used[e] for e in used if e not in (link.head, link.tail)]
            turned = link.head != pair[0].head
            bend = bend_of(*ends, others, i, len(pair), turned)
            colour = ORANGE if link.has_numbers else GREY
            arrow = FancyArrowPatch(
                *((x, y) for x, y in ends),
                arrowstyle="<|-|>" if link.both_ways else "-|>",
                mutation_scale=13,
                color=colour,
                linewidth=1.1,
                connectionstyle=f"arc3,rad={bend}",
                # It begins and ends at the frames of the boxes.
                patchA=boxes[link.head],
                patchB=boxes[link.tail],
                shrinkA=0,
                shrinkB=0,
            )
            axis.add_patch(arrow)
            text = _write(axis, ends[0], _label(link, relations), _SMALL_FONT)
            text.set(color=colour, zorder=2)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
            curve = curve_points(*ends, bend)
            taken.append(free_spot(curve, _extent(axis, text), taken))
            text.set_position(taken[-1].get_points().mean(axis=0))


def _label(link: Link, relations: list[str]) -> str:
    """Names two relations of a link if they fit into three lines, or else one."""
    names = [
        fit(in_words(relations[relation]), _SMALL_FONT, _LABEL, 2)
        for relation in link.relations[:2]
    ]
    has_more = len(link.relations) > len(names)
    if sum(map(len, names)) + has_more > 3:
        del names[1:]
    lines = [line for name in names for line in name]
    if len(link.relations) > len(names):
        lines.append(f"and {len(link.relations) - len(names)} more")
    return "\n".join(lines)


def _write(axis: Axes, place: np.ndarray, words: str, size: float) -> Text:
    text = axis.text(place[0], place[1], words, fontsize=size, parse_math=False)
    text.set(horizontalalignment="center", verticalalignment="center")
    return text


def _extent(axis: Axes, text: Text) -> Bbox:
    """The extent of a text, with a margin."""
    box = text.get_window_extent().transformed(axis.transData.inverted())
    return box.padded(_PAD)


def _write_notes(figure: Figure, drawn: Neighbourhood, hops: int) -> None:
    number = len(drawn.entities) - 1
    what = "neighbours" if hops == 1 else f"entities within {hops} hops"
    note = f"{number:,} of {drawn.num_around:,} {what}"
    if drawn.num_links_left_out:
        note += f", {drawn.num_links_left_out:,} more links between them"
    figure.text(0.01, 0.015, note, fontsize=_FONT, color=GREY)
    handles = [
        Line2D([], [], color=ORANGE, label="relation with numerical features"),
        Line2D([], [], color=GREY, label="other relation"),
    ]
    figure.legend(
        handles=handles, loc="lower right", ncols=2, fontsize=_FONT, frameon=False
    )
