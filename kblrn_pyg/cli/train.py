"""Train a model on a data set and evaluate it."""

import argparse
import os
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.cli.left_out import says_what_is_left_out
from kblrn_pyg.cli.options import (
    add_dataset,
    add_settings,
    given_settings,
    has_several_processes,
    is_first_process,
    option_name,
    settings_from,
    shows_progress,
    tell,
)
from kblrn_pyg.cli.recipe_options import (
    NO_RECIPE,
    add_all_facts,
    add_recipe,
    check_chosen,
    is_staged,
    recipe_of,
)
from kblrn_pyg.cli.training_job import Job, as_groups, only_facts
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.names import check_name, known_name
from kblrn_pyg.nn.settings import (
    EXPERT_LETTERS,
    SCORER_NAMES,
    ModelSettings,
    are_letters,
)
from kblrn_pyg.rules.settings import RuleSettings
from kblrn_pyg.settings import changed, concerns, setting
from kblrn_pyg.sizes import choice_text, choose_model, choose_training
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

    from kblrn_pyg.nn import KBLRN
    from kblrn_pyg.runs import Settings


@dataclass(frozen=True)
class StartSettings:
    """What training starts from."""

    begin_with: str | None = setting(None, "a run whose experts the model starts from")


# What can be set, by its group in settings.json.
GROUPS: dict[str, Any] = {
    "model": ModelSettings,
    "rules": RuleSettings,
    "start": StartSettings,
    "training": FitSettings,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--out", help="the folder of the run (default: runs/DATASET-EXPERTS-seedSEED)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue a run with its stored settings",
    )
    add_recipe(parser)
    add_all_facts(parser)
    parser.add_argument("--threads", type=int, help="the number of threads")
    parser.add_argument(
        "--tensorboard", action="store_true", help="also log for TensorBoard"
    )
    for group in GROUPS.values():
        add_settings(parser, group)


@says_what_is_left_out()
def run(options: argparse.Namespace) -> None:
    if options.threads is not None and options.threads < 1:
        raise DataError(f"--threads must be positive (got {options.threads})")
    words = ["kblrn", "train", options.dataset]
    options = _with_absolute_paths(options)
    groups = {name: settings_from(options, cls) for name, cls in GROUPS.items()}
    experts, seed = groups["model"].experts, groups["training"].seed
    if not experts or not are_letters(experts):
        raise DataError(
            f"--experts must have letters of {EXPERT_LETTERS}, each at most once (got "
            f"{experts!r})"
        )
    recipe = recipe_of(options)
    if options.all_facts and not options.resume:
        check_chosen(recipe, hasattr(options, "epochs"))
    of = experts if recipe == NO_RECIPE else Path(recipe).stem
    name = f"{Path(options.dataset).name}-{of}-seed{seed}"
    folder = Run(options.out or f"runs/{name}", options.tensorboard)
    stored, resume = _stored_by_first(folder, options.resume)
    if resume and is_staged(folder):
        recipe = options.recipe or "auto"  # the folder has a plan
    elif resume:
        groups, recipe = _continued(stored, options), NO_RECIPE
    check_name(options.dataset)
    if recipe == NO_RECIPE:
        _warn_of_unused(groups)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.recipes.apply import recipe_settings
    from kblrn_pyg.recipes.device import find_device
    from kblrn_pyg.training import set_threads

    root = options.root or stored.get("root")
    device = find_device(options.device or stored.get("device", "auto"))
    splits = load_dataset(options.dataset, root, make=root == options.root)
    all_facts = options.all_facts or stored.get("all_facts", False)
    about = {
        "dataset": options.dataset,
        "root": root,
        "device": device,
        "all_facts": all_facts,
        "threads": set_threads(options.threads or stored.get("threads")),
    }
    splits = only_facts(splits) if all_facts else splits
    job = Job(folder, splits, stored | about, device)
    try:
        if recipe != NO_RECIPE:
            plan = job.plan(recipe, options, GROUPS)
            if len(plan.stages) > 1:
                job.train_in_stages(plan)
                return
            groups |= as_groups(plan)
            job.settings |= {"recipe": recipe_settings(plan)}
        elif not resume:
            groups |= _by_size(groups, options, splits["train"]["entity"].num_nodes)
        job.settings |= {name: asdict(group) for name, group in groups.items()}
        model = _new_model(groups, splits["train"]).to(device)
        begin_with = groups["start"].begin_with
        if begin_with is not None and not folder.checkpoint_path.exists():
            _take_experts(model, begin_with)
        job.train_together(model, groups)
    except KeyboardInterrupt:
        command = shlex.join([*words, "--out", str(folder.path), "--resume"])
        tell(f"kblrn train: interrupted, resume with: {command}")
        raise SystemExit(130) from None


def _by_size(
    groups: Mapping[str, Any], options: argparse.Namespace, num_nodes: int
) -> dict[str, Any]:
    """Chooses settings that were not given, by the size of the knowledge base."""
    model, training = groups["model"], groups["training"]
    given = given_settings(options, type(model)), given_settings(options, FitSettings)
    can_be_sparse = "l" in model.experts and set(model.scorer) <= set(SCORER_NAMES)
    for_model = choose_model(num_nodes, given[0], can_be_sparse)
    model = replace(model, **for_model)
    for_training = choose_training(model.sparse, given[1])
    if for_model or for_training:
        tell(choice_text(num_nodes, for_model | for_training))
    return {"model": model, "training": replace(training, **for_training)}


def _with_absolute_paths(options: argparse.Namespace) -> argparse.Namespace:
    """Makes paths absolute, so that they stay valid in another directory."""
    paths = {}
    for name in ("begin_with", "rules"):
        path = getattr(options, name, "provided")
        if path != "provided" and Path(path).exists():
            paths[name] = str(Path(path).resolve())
    dataset = known_name(options.dataset) or options.dataset
    if known_name(dataset) is None and Path(dataset).is_dir():
        dataset = str(Path(dataset).resolve())
    return argparse.Namespace(**vars(options) | paths | {"dataset": dataset})


def _stored_by_first(folder: Run, resume: bool) -> tuple["Settings", bool]:
    """Returns the settings of a run, and whether it continues.

    With several processes, only the first one checks, because it may already have
    begun to write when the others start. Processes that ``torchrun`` restarts
    resume automatically.
    """
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        resume = resume or folder.settings_path.exists()
    if not has_several_processes():
        return _stored_settings(folder, resume), resume
    from kblrn_pyg.shard import agreed

    stored = _stored_settings(folder, resume) if is_first_process() else None
    return agreed((stored, resume))


def _stored_settings(folder: Run, resume: bool) -> "Settings":
    """Returns the settings of a run that continues, or none for a new one."""
    if resume:
        if not folder.settings_path.exists():
            raise DataError(f"{folder.path} is not a run, leave out '--resume'")
        return folder.read_settings()
    if any(folder.path.glob("[!.]*")):  # a killed process may leave hidden files
        raise DataError(
            f"{folder.path} exists, add '--resume' to continue it, or choose another "
            "'--out'"
        )
    return {}


def _continued(stored: "Settings", options: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings of a run that continues, possibly with more epochs."""
    groups = {
        name: settings_from(stored.get(name, {}), cls) for name, cls in GROUPS.items()
    }
    known = {"dataset": stored.get("dataset", options.dataset)}
    for group in groups.values():
        known |= vars(group)
    for name, value in known.items():
        given = getattr(options, name, value)
        if given != value and name != "epochs":
            raise DataError(
                f"the run was made with {option_name(name)[2:]} {value}, it cannot "
                f"continue with {given}"
            )
    epochs = getattr(options, "epochs", known["epochs"])
    return groups | {"training": replace(groups["training"], epochs=epochs)}


def _warn_of_unused(groups: Mapping[str, Any]) -> None:
    """Warns about rule settings without an expert that uses them."""
    rules = groups["rules"]
    used_by = {field.name: field.metadata["expert"] for field in fields(rules)}
    experts = groups["model"].experts
    if "l" in experts and groups["model"].penalty is not None:
        experts += "r"  # which uses rules as well
    for name in changed(rules):
        if not concerns(used_by[name], experts):
            letters = " or ".join(used_by[name])
            message = f"'{name}' has no effect without the expert {letters}"
            warnings.warn(message, stacklevel=2)


def _new_model(groups: Mapping[str, Any], train: "HeteroData") -> "KBLRN":
    from kblrn_pyg.nn import KBLRN
    from kblrn_pyg.rules import find_rules
    from kblrn_pyg.training import seed_all

    settings, rules = groups["model"], None
    has_penalty = "l" in settings.experts and settings.penalty is not None
    if set("re") & set(settings.experts) or has_penalty:
        confidences = "e" in settings.experts
        rules = find_rules(train, groups["rules"], shows_progress(), confidences)
    seed_all(groups["training"].seed)
    return KBLRN.from_data(train, **asdict(settings), rules=rules)


def _take_experts(model: "KBLRN", other_run: str) -> None:
    from kblrn_pyg.runs import load_model

    other = load_model(other_run)
    try:
        model.take_experts(other)
    except ValueError as error:
        raise DataError(f"cannot begin with {other_run}: {error}") from None
