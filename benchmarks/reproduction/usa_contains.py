r"""The places of FB15k-237 that lie in the USA, for the paper's query about them.

``benchmarks/usa_contains.py`` prints how many places each source gives, and how far
each can be trusted.

The paper asks (USA, /location/location/contains, ?) and judges the answers by a
complete list: "1619 entities that correctly complete the query", determined by
hand, of which FB15k-237 contains 954. The list was never published. This one has
1,609 entities, all from public data, the 954 among them. Which kinds of entities
are answers is read off the known ones: regions, states, counties, settlements and
their parts, islands, mountains and waters, universities and schools, cemeteries,
airports, parks, museums, halls of fame and other buildings; never companies,
teams, festivals, authorities or people, even where Freebase gives coordinates for
them. FB15k-237's triples are all in FB15k, which has more, so facts are FB15k's,
those of all splits. The sources, in this order; each counts what is new:

==============  =====  ==========================================================
FB15k-237         954  known answers
FB15k              96  further known answers
containment       497  what ``contains`` and ``containedby`` lead to, step by step
coordinates        51  no known container; the nearest place that has one is here
address             5  no coordinates either; mailing address here
description         4  nor an address; Wikidata's words name the USA or a state
by eye              2  nothing of all that
==============  =====  ==========================================================

Precision. All 1,609 were read, with names and descriptions: none was found that is
not in the USA. 1,547 of them have Freebase's word for it. The tests behind the
other 62 are tried in the report on places whose container is known: of those that
the coordinates put into the USA 99.0 % are contained in it, by address 100 %, by
description 99.4 %. What they get wrong are the territories, towns on the border,
ranges and lakes across it, and the country of Georgia: places with a container
that tells better.

Other relations of containment were looked at and are not followed. Those of
administration (``/location/administrative_division``, ``/location/us_county``,
``/location/hud_county_place``, ``/base/aareas``, ``/base/biblioness``) and of
neighbourhoods lead only to places that are in the list without them, to the
territories and, once, to Warsaw. Addresses are right, but a third and more of them
are those of companies, so only places are asked for theirs. ``adjoins`` and
``partially_containedby`` cross borders.

Limits. Kinds and borderline cases are our judgement, not the authors':

* The territories are left out: Guam, American Samoa, Puerto Rico with San Juan and
  Ponce, and the Virgin Islands, which Freebase puts into oceans and continents.
  With these six there are 1,615.
* What crosses the border is left out unless it is a known answer: the Columbia
  River, Lake Erie, Lake Superior, the Appalachians, the Rocky Mountains and the
  Cascade Range. So is what once was there, as the Confederate States.
* Halls of fame count when they have a house, because the Walk of Fame is a known
  answer; university systems do, because California's is one.
* Places whose kind, coordinates and words are all missing cannot be found. The two
  under "by eye" are the only ones that reading the rest of the entities with words
  like "museum" or "school" brought up.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.datasets.freebase import LABELS
from kblrn_pyg.datasets.names import default_root
from kblrn_pyg.evaluation import ScoringModel, query_auc

Splits = Mapping[str, HeteroData]
Pairs = dict[str, list[tuple[str, str]]]
Steps = dict[str, set[str]]
Points = dict[str, NDArray[np.float64]]

USA = "/m/09c7w0"
CONTAINS = "/location/location/contains"
CONTAINED_BY = "/location/location/containedby"

# The head of such a relation is of a kind that known answers are of.
PLACES = (
    "/location/",
    "/geography/",
    "/aviation/airport/",
    "/architecture/museum/",
    "/architecture/structure/",
    "/education/educational_institution/",
    "/education/university/",
    "/travel/tourist_attraction/",
    "/people/place_of_interment/",
    "/award/hall_of_fame/",
)
# Microsoft, too, has pupils by specialization.
NO_PLACES = "./education/education/specialization"

# South, north, west and east of the contiguous states, of Alaska and of Hawaii.
REGIONS = (
    (24.3, 49.5, -125.0, -66.8),
    (51.0, 71.6, -180.0, -129.9),
    (18.5, 28.6, -179.0, -154.5),
)

BY_EYE = {
    "/m/026gvfj",  # Lee Strasberg Theatre and Film Institute, New York
    "/m/027jbr",  # National Museum of Racing and Hall of Fame, Saratoga Springs
}


def usa_answers(
    splits: Splits,
    root: str | None = None,
    fb15k: Splits | None = None,
    wikidata_path: str | Path | None = None,
) -> list[int]:
    r"""Returns the entities that complete (USA, /location/location/contains, ?).

    Args:
        splits (dict): The knowledge base of each split of FB15k-237.
        root (str, optional): The directory that holds the data sets, where
            what is not given is looked for. (default: :obj:`None`, the user's
            cache)
        fb15k (dict, optional): The knowledge base of each split of FB15k.
            (default: :obj:`None`)
        wikidata_path (str, optional): The file :obj:`entity2wikidata.json`.
            (default: :obj:`None`)

    Returns:
        The ids in FB15k-237, ascending.
    """
    evidence = Evidence(
        fb15k or load_dataset("FB15k", root), wikidata_path or wikidata_file(root)
    )
    sources = usa_sources(splits, evidence)
    resolve = Vocabulary.of(splits["train"]).entities.resolve
    return sorted(resolve(name) for names in sources.values() for name in names)


def usa_sources(splits: Splits, evidence: "Evidence") -> dict[str, set[str]]:
    r"""Returns what each source adds to those before it, by identifier.

    Args:
        splits (dict): The knowledge base of each split of FB15k-237.
        evidence (Evidence): What FB15k and Wikidata know.
    """
    entities = set(Vocabulary.of(splits["train"]).entities.identifiers)
    # A container outside the USA is reason enough not to ask further.
    free = evidence.places - evidence.containers.keys() - evidence.around
    located = free & evidence.points.keys()
    unlocated = free - located
    found = {
        "FB15k-237": _known_answers(_pairs(splits)),
        "FB15k": evidence.known,
        "containment": evidence.inside,
        "coordinates": evidence.by_coordinates(located),
        "address": evidence.by_address(unlocated),
        "description": evidence.by_description(unlocated),
        "by eye": BY_EYE,
    }
    return _only_new(found, entities)


class Evidence:
    r"""What FB15k and Wikidata know about who is in the USA.

    Args:
        fb15k (dict): The knowledge base of each split of FB15k.
        wikidata_path (str): The file :obj:`entity2wikidata.json`.
    """

    def __init__(self, fb15k: Splits, wikidata_path: str | Path) -> None:
        self.pairs = _pairs(fb15k)
        self.words = _words(wikidata_path)
        self.points = _points(fb15k["train"])
        self.places = _heads(self.pairs, PLACES)
        self.addresses = _addresses(self.pairs)
        self.known = _known_answers(self.pairs)
        self.containers = _containers(self.pairs)
        #: The USA and what contains it.
        self.around = _reach({USA}, self.containers) | {USA}
        self.inside = self._inside()

    def _inside(self) -> set[str]:
        contents = _reversed(self.containers)
        countries = _heads(self.pairs, ("/location/country/",)) - {USA}
        # Freebase puts New York University into Italy, and Macon into the country
        # of Georgia: known answers, and what is in them, stay here.
        abroad = _reach(countries, contents, never=self.known | {USA})
        return _reach({USA}, contents, never=abroad)

    def by_coordinates(self, candidates: Iterable[str]) -> set[str]:
        """Keeps what lies next to a place in the USA rather than to one abroad."""
        known = self.inside | self.containers.keys() - self.around
        located = [place for place in self.points if place in known]
        points = np.array([self.points[place] for place in located])
        here = np.array([place in self.inside for place in located])
        index = {place: i for i, place in enumerate(located)}
        found = set()
        for place in filter(self._is_in_regions, candidates):
            away = _squared_distances(points, self.points[place])
            if place in index:
                away[index[place]] = np.inf  # no one is their own neighbour
            if here[away.argmin()]:
                found.add(place)
        return found

    def _is_in_regions(self, place: str) -> bool:
        latitude, longitude = self.points[place]
        return any(
            south <= latitude <= north and west <= longitude <= east
            for south, north, west, east in REGIONS
        )

    def by_address(self, candidates: Iterable[str]) -> set[str]:
        """Keeps what has a mailing address in the USA, and none elsewhere."""
        inside = self.inside | {USA}
        return {
            place
            for place in candidates
            if place in self.addresses and self.addresses[place] <= inside
        }

    def by_description(self, candidates: Iterable[str]) -> set[str]:
        """Keeps what has the USA or a state in its label or description."""
        states = [
            re.escape(self.words[tail][0])
            for head, tail in self.pairs["/location/country/first_level_divisions"]
            if head == USA
        ]
        usa = re.compile(rf"\b({'|'.join(states)}|United States|USA?)\b|\bU\.S\.")
        return {
            place
            for place in candidates
            if place in self.words and usa.search(" ".join(self.words[place]))
        }


def usa_figures(
    model: ScoringModel, splits: Splits, answers: Iterable[int]
) -> dict[str, float]:
    r"""Returns how well a model answers (USA, /location/location/contains, ?).

    The area under the precision-recall curve is over all entities as
    candidates. MR and MRR are over all answers, those of the training triples
    among them, each ranked among the entities that are no answers; a tie
    counts half. No training triple counts as evidence for itself. The paper
    does not say which completions its MR and MRR average over, nor whether
    completions of the training triples count for any of the three figures.

    Args:
        model (KBLRN): The model.
        splits (dict): The knowledge base of each split of FB15k-237.
        answers (iterable): All entities that complete the query, by id.

    Returns:
        :obj:`auc_pr`, :obj:`mr`, :obj:`mrr`, and :obj:`count`, the number of
        answers.
    """
    result = query_auc(model, splits["test"], CONTAINS, head=USA, answers=list(answers))
    metrics = result.metrics
    return {
        "auc_pr": result.auc_pr,
        "mr": metrics.mr,
        "mrr": metrics.mrr,
        "count": metrics.count,
    }


def wikidata_file(root: str | None = None) -> Path:
    r"""Returns the file of labels and descriptions, downloaded if need be.

    Args:
        root (str, optional): The directory that holds the data sets.
            (default: :obj:`None`, the user's cache)
    """
    raw_dir = str(Path(root or default_root()) / "FB15k" / "raw")
    LABELS.fetch(raw_dir)
    return LABELS.locate(raw_dir)


def _pairs(splits: Splits) -> Pairs:
    """Returns the facts of all splits: head and tail, by relation."""
    names = Vocabulary.of(splits["train"]).entities.identifiers
    return {
        edge_type[1]: [
            (names[head], names[tail])
            for data in splits.values()
            for head, tail in data[edge_type].edge_label_index.t().tolist()
        ]
        for edge_type in splits["train"].edge_types
    }


def _known_answers(pairs: Pairs) -> set[str]:
    return {tail for head, tail in pairs[CONTAINS] if head == USA}


def _heads(pairs: Pairs, beginnings: tuple[str, ...]) -> set[str]:
    return {
        head
        for relation, edges in pairs.items()
        if relation.startswith(beginnings) and not relation.endswith(NO_PLACES)
        for head, _ in edges
    }


def _containers(pairs: Pairs) -> Steps:
    containers = defaultdict(set)
    for container, place in pairs[CONTAINS]:
        containers[place].add(container)
    for place, container in pairs[CONTAINED_BY]:
        containers[place].add(container)
    return dict(containers)


def _addresses(pairs: Pairs) -> Steps:
    """Returns the cities, states and countries in the address of each entity."""
    addresses = defaultdict(set)
    for relation, edges in pairs.items():
        if "./location/mailing_address/" in relation:
            for entity, part in edges:
                addresses[entity].add(part)
    return dict(addresses)


def _reversed(steps: Steps) -> Steps:
    out = defaultdict(set)
    for start, ends in steps.items():
        for end in ends:
            out[end].add(start)
    return dict(out)


def _reach(
    starts: set[str], steps: Steps, never: set[str] | frozenset[str] = frozenset()
) -> set[str]:
    """Returns what steps lead to, without ever stepping on some."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        new = steps.get(waiting.pop(), set()) - found - never
        found |= new
        waiting.extend(new)
    return found


def _points(data: HeteroData) -> Points:
    """Returns the latitude and longitude of the entities that have both."""
    names = Vocabulary.of(data)
    columns = [names.attributes.resolve(name) for name in ("latitude", "longitude")]
    values = data["entity"].x[:, columns].numpy()
    return {
        name: point
        for name, point in zip(names.entities.identifiers, values)
        if not np.isnan(point).any()
    }


def _squared_distances(
    points: NDArray[np.float64], point: NDArray[np.float64]
) -> NDArray[np.float64]:
    away = points - point
    # A degree of longitude is shorter the farther north it is.
    away[:, 1] *= np.cos(np.radians(point[0]))
    return (away**2).sum(axis=1)


def _words(path: str | Path) -> dict[str, tuple[str, str]]:
    """Reads the label and the description of each entity."""
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)
    return {
        name: (entry["label"] or "", entry["description"] or "")
        for name, entry in entries.items()
    }


def _only_new(found: dict[str, set[str]], entities: set[str]) -> dict[str, set[str]]:
    out, seen = {}, set()
    for source, names in found.items():
        out[source] = (names & entities) - seen
        seen |= names
    return out
