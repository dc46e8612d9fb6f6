"""The settings of the run."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.report.html import Html, Section, element, join
from kblrn_pyg.rules import RuleSettings
from kblrn_pyg.training.settings import FitSettings

# What the settings are about, by the name of their group in 'settings.json'.
_GROUPS = {"model": ModelSettings, "rules": RuleSettings, "training": FitSettings}


def settings_section(settings: Mapping[str, Any], instance: str) -> Section:
    r"""Lists the settings, group by group.

    Settings of experts that the model lacks are left out.

    Args:
        settings (dict): The settings of the run.
        instance (str): The experts of the model, such as :obj:`"lrn"`.
    """
    groups: dict[str, dict[str, Any]] = {"run": {}}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            groups[name] = dict(value)
        else:
            groups["run"][name] = value
    lists = [_group(title, group, instance) for title, group in groups.items()]
    content = element("div", *filter(None, lists), class_="settings")
    return Section("settings", "Settings", content)


def _group(title: str, group: Mapping[str, Any], instance: str) -> Html:
    about = {
        field.name: field.metadata
        for field in (fields(_GROUPS[title]) if title in _GROUPS else ())
    }
    letters = instance.partition("+")[0]
    pairs = []
    for name, value in group.items():
        more: Mapping[str, Any] = about.get(name, {})
        if value is None:
            value = more.get("none") or None
        if value is not None and more.get("expert", "") in letters:
            pairs.append(element("dt", name.replace("_", " "), title=more.get("help")))
            pairs.append(element("dd", _text(value)))
    if not pairs:
        return Html("")
    return element("div", element("h3", title), element("dl", join(pairs)))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
