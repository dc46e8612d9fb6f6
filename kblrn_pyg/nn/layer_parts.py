"""The contribution of a layer to a score, in the units of its attribute."""

from typing import Any

import numpy as np

from kblrn_pyg.data.layers import LayerFeatures
from kblrn_pyg.data.pairs import PairAttribute, compare_rows, in_own_unit
from kblrn_pyg.data.words import number_text, value_text
from kblrn_pyg.nn.part import Part, Ref


def layer_part(
    features: LayerFeatures,
    i: int,
    x: list[list[float]],
    contribution: float,
    attribute_names: list[str],
) -> Part:
    r"""Returns what a layer gives, with how it comes about.

    Args:
        features (LayerFeatures): The layers.
        i (int): The layer.
        x (list): The numbers of head and tail.
        contribution (float): What the layer adds to the score.
        attribute_names (list): The names of the attributes.
    """
    attribute = features.attributes[int(features.pair[i])]
    head, tail = np.array(x)[:, None]
    compared = compare_rows(
        attribute.side(head, is_tail=False), attribute.side(tail, is_tail=True)
    )
    both = float(in_own_unit(attribute.kind, compared)[0])
    if attribute.kind == "signed_log":
        both = head[0, attribute.a] - tail[0, attribute.b]
    low, high = in_own_unit(attribute.kind, features.usual[i].numpy()).tolist()
    is_known = both == both  # NaN, the unknown, differs from itself
    details: dict[str, Any] = {"attribute": attribute.name, "kind": attribute.kind}
    details |= {"head": _numbers(attribute, head[0], False)}
    details |= {"tail": _numbers(attribute, tail[0], True)}
    details |= {"compared": both if is_known else None, "usual": [low, high]}
    is_plain = attribute.a == attribute.b and attribute.kind != "haversine"
    words = (Ref("attribute", attribute.a) if is_plain else attribute.name,)
    note = _note(attribute, details, attribute_names)
    return Part(contribution, words, (note,), details=details)


def _numbers(attribute: PairAttribute, x: np.ndarray, is_tail: bool) -> Any:
    """Returns the number of an entity, or its two numbers; ``None`` is unknown."""
    if attribute.kind == "haversine":
        pair = [float(x[attribute.a]), float(x[attribute.b])]
        return None if np.isnan(pair).any() else pair
    value = float(x[attribute.b if is_tail else attribute.a])
    return None if np.isnan(value) else value


def _note(attribute: PairAttribute, details: dict[str, Any], names: list[str]) -> str:
    columns = names[attribute.a], names[attribute.b]
    head, tail = (
        _text(columns[i], details[end]) for i, end in enumerate(("head", "tail"))
    )
    both, (low, high) = details["compared"], details["usual"]
    if both is None:
        return f"{head} and {tail}"
    if attribute.kind == "haversine":
        distances = (number_text(one, max(high, 1)) for one in (both, low, high))
        return "{} km apart, usually {} to {}".format(*distances)
    if attribute.kind == "log_ratio":
        ratios = (number_text(one) for one in (both, low, high))
        text = f"{head} / {tail}"
        return f"{text} = " + "{}, usually {} to {}".format(*ratios)
    tail = f"({tail})" if tail.startswith("−") else tail
    text = f"{head} − {tail} = {value_text('', both)}"
    if attribute.kind == "signed_log":
        return text
    scale = max(abs(low), abs(high))
    usual = (number_text(one, scale) for one in (low, high))
    return f"{text}, usually {' to '.join(usual)}"


def _text(name: str, value: float | list[float] | None) -> str:
    if value is None:
        return "unknown"
    return value_text(name, value) if isinstance(value, float) else "known"
