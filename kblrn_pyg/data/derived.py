"""Numbers derived from others: of one entity, or of two entities together."""

import copy
import re
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.names import Names, last_segment
from kblrn_pyg.data.pairs import Floats, PairAttribute
from kblrn_pyg.data.validate import validate_kb

# The functions of two entities, with the least number of their arguments.
FUNCTIONS = {"difference": 1, "log_ratio": 1, "haversine": 2}
_FORM = re.compile(r"([^=]+)=\s*(\w+)\s*\(([^()]*)\)\s*")


def derive(data: HeteroData, *declarations: str) -> HeteroData:
    r"""Returns the same knowledge base, with values derived from the numbers of two
    entities.

    Layers of numbers (:obj:`numerical="layer"`) use them in addition to the
    differences of attributes:

    * :obj:`"distance = haversine(latitude, longitude)"` is the distance between two
      places in kilometres.
    * :obj:`"age = difference(year, birth_year)"` is the :obj:`year` of the head
      minus the :obj:`birth_year` of the tail.
    * :obj:`"density = log_ratio(people, area)"` is the logarithm of the
      :obj:`people` of the head divided by the :obj:`area` of the tail.

    With a single argument, the same attribute of both entities is compared.

    Args:
        data (HeteroData): The knowledge base.
        *declarations (str): The declarations.

    Raises:
        DataError: If a declaration cannot be understood, or its attributes have
            unusable numbers.
    """
    data = copy.copy(data)
    data.derived = [*data.to_dict()["_global_store"].get("derived", []), *declarations]
    found = derived_attributes(data)
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) > 1 or one.name in data.attribute_names:
            raise DataError(f"there is an attribute {one.name!r} already")
        if one.kind == "haversine":
            _check_places(data, one)
    return data


def derived_attributes(data: HeteroData) -> list[PairAttribute]:
    r"""Returns the declarations of :meth:`derive`, and the distance between places,
    if exactly one attribute is called latitude and one longitude.

    Args:
        data (HeteroData): The knowledge base.
    """
    names = list(data.attribute_names)
    declarations = data.to_dict()["_global_store"].get("derived", [])
    found = [_parse(one, names) for one in declarations]
    place = [
        [i for i, name in enumerate(names) if last_segment(name).casefold() == wanted]
        for wanted in ("latitude", "longitude")
    ]
    has_place = len(place[0]) == len(place[1]) == 1
    is_declared = any(one.kind == "haversine" for one in found)
    is_taken = "distance" in [*names, *(one.name for one in found)]
    if has_place and not is_declared and not is_taken:
        (latitude,), (longitude,) = place
        distance = PairAttribute("distance", "haversine", latitude, longitude)
        if _are_places(data["entity"].x, distance):
            found.append(distance)
    return found


def add_attribute(
    data: HeteroData,
    name: str,
    function: Callable[..., Floats],
    columns: Sequence[str],
) -> HeteroData:
    r"""Returns the same knowledge base with an additional attribute.

    .. code-block:: python

        data = add_attribute(data, "density", np.divide, ["people", "area"])

    Args:
        data (HeteroData): The knowledge base.
        name (str): The name of the new attribute.
        function (callable): A function of NumPy arrays, one for each column. It
            gets the entities that have all of these numbers; NaN is unknown.
        columns (sequence): The attributes that the function takes, by name.
    """
    if name in data.attribute_names:
        raise DataError(f"there is an attribute {name!r} already")
    names = Names("attribute", data.attribute_names)
    x = data["entity"].x.detach().double()
    arguments = x[:, [names.resolve(one) for one in columns]].numpy()
    known = ~np.isnan(arguments).any(axis=1)
    values = np.full(len(x), np.nan)
    found = np.asarray(function(*arguments[known].T), dtype=np.float64)
    if found.shape != (int(known.sum()),):
        raise DataError(
            f"the function of {name!r} must return one number for each entity (got "
            f"the shape {found.shape} for {int(known.sum())} entities)"
        )
    values[known] = found
    data = copy.copy(data)
    data["entity"].x = torch.cat([x, torch.from_numpy(values)[:, None]], dim=1)
    data.attribute_names = [*data.attribute_names, name]
    validate_kb(data)
    return data


def _parse(declaration: str, names: list[str]) -> PairAttribute:
    match = _FORM.fullmatch(declaration)
    functions = ", ".join(FUNCTIONS)
    if match is None or not match[1].strip():
        raise DataError(
            f"cannot derive {declaration!r}, expected NAME=FUNCTION(ATTRIBUTE, "
            f"ATTRIBUTE) with one of the functions {functions}"
        )
    name, kind = match[1].strip(), match[2]
    arguments = [one.strip() for one in match[3].split(",")]
    if kind not in FUNCTIONS:
        raise DataError(
            f"cannot derive {name!r}: unknown function {kind!r}, expected one of "
            f"{functions}"
        )
    if not FUNCTIONS[kind] <= len(arguments) <= 2 or not all(arguments):
        least = FUNCTIONS[kind]
        number = "two attributes" if least == 2 else "one or two attributes"
        raise DataError(f"cannot derive {name!r}: {kind} takes {number}")
    known = Names("attribute", names)
    columns = [known.resolve(one) for one in arguments]
    return PairAttribute(name, kind, columns[0], columns[-1])


def _check_places(data: HeteroData, attribute: PairAttribute) -> None:
    if not _are_places(data["entity"].x, attribute):
        raise DataError(
            f"cannot derive {attribute.name!r}: latitudes must lie in −90 to 90, and "
            "longitudes in −360 to 360 degrees"
        )


def _are_places(x: Tensor, attribute: PairAttribute) -> bool:
    limits = {attribute.a: 90, attribute.b: 360}
    return not any(bool((x[:, c].abs() > most).any()) for c, most in limits.items())
