"""Layers of numbers word for word: one triple and one layer at a time."""

import bisect
import math


def compared(attribute, head, tail):
    """How two rows of numbers compare, None for the unknown."""
    if attribute.kind == "haversine":
        numbers = [row[c] for row in (head, tail) for c in (attribute.a, attribute.b)]
        if any(math.isnan(one) for one in numbers):
            return None
        phi1, theta1, phi2, theta2 = map(math.radians, numbers)
        square = math.sin((phi2 - phi1) / 2) ** 2
        square += math.cos(phi1) * math.cos(phi2) * math.sin((theta2 - theta1) / 2) ** 2
        return 2 * 6371.0 * math.sqrt(square)  # a straight line through the Earth
    one, other = head[attribute.a], tail[attribute.b]
    if not (is_known(attribute, one) and is_known(attribute, other)):
        return None
    return scaled(attribute, one) - scaled(attribute, other)


def is_known(attribute, value):
    if attribute.kind == "log_ratio":
        return value > 0
    return not math.isnan(value)


def scaled(attribute, value):
    if attribute.kind == "log_ratio":
        return math.log(value)
    if attribute.kind == "signed_log":
        return math.copysign(math.log(1 + abs(value) / attribute.scale), value)
    return value


def has_side(attribute, row, is_tail):
    if attribute.kind == "haversine":
        return not (math.isnan(row[attribute.a]) or math.isnan(row[attribute.b]))
    return is_known(attribute, row[attribute.b if is_tail else attribute.a])


def layer_value(knots, values, x):
    """The piecewise linear function through the knots."""
    k = bisect.bisect_right(knots, x)
    if k == 0:
        return values[0]
    if k == len(knots):
        return values[-1]
    part = (x - knots[k - 1]) / (knots[k] - knots[k - 1])
    return (1 - part) * values[k - 1] + part * values[k]


def score(features, x, table, missing, triple):
    """The sum of the layers of a triple's relation."""
    head, rel, tail = triple
    total = 0.0
    for i in range(int(features.ptr[rel]), int(features.ptr[rel + 1])):
        attribute = features.attributes[int(features.pair[i])]
        begin, end = int(features.knot_ptr[i]), int(features.knot_ptr[i + 1])
        has_head = has_side(attribute, x[head], False)
        has_tail = has_side(attribute, x[tail], True)
        if has_head and has_tail:
            d = compared(attribute, x[head], x[tail])
            knots = features.knot[begin:end].tolist()
            total += layer_value(knots, table[begin:end], d)
        elif has_tail:
            total += missing[i][0]
        elif has_head:
            total += missing[i][1]
    return total
