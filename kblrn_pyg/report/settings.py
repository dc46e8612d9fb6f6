"""What the run was asked for."""

from collections.abc import Mapping
from typing import Any

from kblrn_pyg.report.html import Html, Section, element, join

# The settings that mean nothing to a model without one of the experts.
_OF_EXPERT = {
    "l": {
        "hidden_channels",
        "scorer",
        "dropout",
        "entity_dropout",
        "latent_dropout",
        "n3",
        "l2",
    },
    "r": {"preset", "min_head_coverage"},
    "n": {"numerical", "learn_rbf"},
}


# Without a limit; elsewhere, nothing stands for nothing.
_ALL = {"num_negatives"}


def settings_section(settings: Mapping[str, Any]) -> Section:
    r"""Lists the settings, group by group.

    Args:
        settings (dict): The settings of the run.
    """
    experts = settings["model"]["experts"]
    unused = set[str]().union(
        *(names for letter, names in _OF_EXPERT.items() if letter not in experts)
    )
    groups: dict[str, dict[str, Any]] = {"run": {}}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            groups[name] = {k: v for k, v in value.items() if k not in unused}
        else:
            groups["run"][name] = value
    lists = [_group(title, group) for title, group in groups.items() if group]
    content = element("div", *lists, class_="settings")
    return Section("settings", "Settings", content)


def _group(title: str, group: Mapping[str, Any]) -> Html:
    pairs = [
        element("dt", name.replace("_", " ")) + element("dd", _text(value))
        for name, value in group.items()
        if value is not None or name in _ALL
    ]
    return element("div", element("h3", title), element("dl", join(map(Html, pairs))))


def _text(value: Any) -> str:
    if value is None:
        return "all entities"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
