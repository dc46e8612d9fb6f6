"""The training of the model: loss and validation by epoch, and the settings."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.plotting import plot_training
from kblrn_pyg.report.figures import pictures
from kblrn_pyg.report.html import Html, Section, element, join, note
from kblrn_pyg.rules import RuleSettings
from kblrn_pyg.settings import concerns
from kblrn_pyg.training import Run
from kblrn_pyg.training.history import History, read_histories
from kblrn_pyg.training.settings import FitSettings

# What the settings are about, by the name of their group in 'settings.json'.
_GROUPS = {"model": ModelSettings, "rules": RuleSettings, "training": FitSettings}


def curve_section(path: Path) -> Section | None:
    """Draws loss and validation by epoch, if anything has been logged."""
    if not Run(path).log_path.exists():
        return None
    histories = [one for one in read_histories([path]) if one.loss]
    if not histories:
        return None
    notes = [note(_how_it_went(one, len(histories) > 1)) for one in histories]
    images = pictures(plot_training(histories), "Loss and validation by epoch")
    if not any(one.mrr for one in histories):
        images = images[:1]  # the other one is empty
    shown = element("div", *images, class_="pictures large")
    return Section("training", "Training", join([*notes, shown]))


def _how_it_went(history: History, is_named: bool) -> str:
    best, last = history.best_epoch, max(history.loss)
    text = f"Epochs: {last:,}. There was no validation."
    if best is not None:
        text = (
            f"Epochs: {last:,}. The best validation was after epoch {best:,}, with an "
            f"MRR of {history.mrr[best]:.3f}; the model has the weights of that epoch."
        )
    return f"{history.name}: {text}" if is_named else text


def settings_section(settings: Mapping[str, Any], instance: str) -> Section:
    """Lists the settings, group by group, except those of experts that the model
    lacks."""
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
        if value is not None and concerns(more.get("expert", ""), letters):
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
