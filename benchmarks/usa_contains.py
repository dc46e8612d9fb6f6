"""What the list of places in the USA is made of, and how far to trust it.

    KBLRN_DATA=... python benchmarks/usa_contains.py [--root DIR] [--list]

``reproduction/usa_contains.py`` tells how the list is made, and what it is for.
"""

import argparse
import sys

from reproduction.usa_contains import (
    CONTAINED_BY,
    USA,
    Evidence,
    usa_sources,
    wikidata_file,
)

from kblrn_pyg.datasets import load_dataset

IN_THE_PAPER = 1619

# Relations that say, or might be thought to say, that the head is inside the tail.
LOOKED_AT = (
    CONTAINED_BY,
    "/location/administrative_division/country",
    "/location/administrative_division/first_level_division_of",
    "/location/administrative_division/second_level_division_of",
    "/location/hud_county_place/county",
    "/location/hud_county_place/place",
    "/location/neighborhood/neighborhood_of",
    "/base/aareas/schema/administrative_area/administrative_parent",
    "/base/biblioness/bibs_location/country",
    "/base/biblioness/bibs_location/state",
    "/base/biblioness/bibs_location/city",
    "/education/educational_institution/parent_institution",
    "/travel/tourist_attraction/near_travel_destination",
    "/organization/organization/headquarters./location/mailing_address/citytown",
    "/organization/organization/headquarters./location/mailing_address/state_province_region",
    "/organization/organization/headquarters./location/mailing_address/country",
    "/location/location/partially_containedby",
    "/location/location/adjoin_s./location/adjoining_relationship/adjoins",
)


def report_sources(sources: dict[str, set[str]]) -> None:
    for source, names in sources.items():
        print(f"{source:14}{len(names):6,}")
    total = sum(map(len, sources.values()))
    print(f"{'together':14}{total:6,}, in the paper {IN_THE_PAPER:,}")


def report_tests(evidence: Evidence) -> None:
    """Prints how the tests do on places whose container is known."""
    places = evidence.places & evidence.containers.keys() - evidence.around
    located = places & evidence.points.keys()
    for test, able, found in (
        ("coordinates", located, evidence.by_coordinates(located)),
        ("address", places & evidence.addresses.keys(), evidence.by_address(places)),
        ("description", places, evidence.by_description(places)),
    ):
        right = found & evidence.inside
        print(
            f"{test:14}{len(right):6,} of {len(found):,} it takes are contained "
            f"({len(right) / len(found):.1%}); "
            f"it takes {len(right) / len(able & evidence.inside):.1%} of those it could"
        )


def report_relations(evidence: Evidence, answers: set[str]) -> None:
    """Prints how many heads of tails in the USA are in it by containment alone."""
    inside = evidence.inside | {USA}
    for relation in LOOKED_AT:
        heads = {head for head, tail in evidence.pairs[relation] if tail in inside}
        listed, contained = len(heads & answers), len(heads & evidence.inside)
        print(f"{len(heads):6,}{contained:7,}{listed:7,}  {relation}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--list", action="store_true", help="print every answer")
    options = parser.parse_args()
    fb15k = load_dataset("FB15k", options.root)
    evidence = Evidence(fb15k, wikidata_file(options.root))
    sources = usa_sources(load_dataset("FB15k-237", options.root), evidence)
    if options.list:
        for source, names in sources.items():
            for name in sorted(names):
                label, description = evidence.words.get(name, ("", ""))
                print(name, source, label, description, sep="\t")
        return 0
    print("What each source adds:\n")
    report_sources(sources)
    print("\nThe tests, on places whose container is known:\n")
    report_tests(evidence)
    print("\nHeads of a tail in the USA: all, contained in it, in the list:\n")
    report_relations(evidence, set().union(*sources.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
