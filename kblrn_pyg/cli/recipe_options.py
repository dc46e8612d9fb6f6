"""The options of commands that choose a recipe."""

import argparse
from pathlib import Path

from kblrn_pyg.data import DataError
from kblrn_pyg.recipes.budget import parse_budget
from kblrn_pyg.recipes.device import DEVICES
from kblrn_pyg.recipes.files import PLAN_PATH, read_recipe
from kblrn_pyg.recipes.named import NAMES
from kblrn_pyg.training.run import Run

# The settings are those of the options, and their defaults those of the help text.
NO_RECIPE = "none"
# Who names these builds a model of their own.
_OWN_MODEL = ("experts", "scorer", "begin_with")


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    names = "; ".join(f"{name}: {text}" for name, text in NAMES.items())
    parser.add_argument(
        "--recipe",
        metavar="NAME|FILE|RUN",
        help=f"{names}; {NO_RECIPE}: the settings below, with their defaults; or a "
        "recipe file, or a run whose recipe to use. Options override the recipe. "
        "(default: auto, but none if --experts, --scorer or --begin-with are given)",
    )
    parser.add_argument(
        "--budget",
        metavar="TIME",
        help="the time that recipe auto may take, such as 10m or 2h (default: 1h)",
    )
    parser.add_argument(
        "--device",
        choices=DEVICES,
        help="the device to train on (default: auto, CUDA if available)",
    )


def add_all_facts(parser: argparse.ArgumentParser) -> None:
    """Adds the option to train on all facts."""
    parser.add_argument(
        "--all-facts",
        action="store_true",
        help="also train on validation and test facts, with a recipe that was chosen "
        "before; the model cannot be evaluated then",
    )


def recipe_of(options: argparse.Namespace) -> str:
    """Returns the recipe that options ask for, once its name or file is checked."""
    is_own = any(hasattr(options, name) for name in _OWN_MODEL)
    recipe = options.recipe or (NO_RECIPE if is_own else "auto")
    if options.budget is not None:
        parse_budget(options.budget)
        if recipe != "auto":
            raise DataError(
                f"--budget has no effect on recipe {recipe}, leave it out or add "
                "'--recipe auto'"
            )
    if recipe not in (*NAMES, NO_RECIPE):
        if not Path(recipe).exists():
            raise DataError(
                f"--recipe must be one of {', '.join(NAMES)}, {NO_RECIPE}, a file or a "
                f"run (got {recipe!r})"
            )
        read_recipe(recipe)
    if hasattr(options, "begin_with") and recipe != NO_RECIPE:
        raise DataError(f"--begin-with has no effect on recipe {recipe}, leave it out")
    return recipe


def is_staged(folder: Run) -> bool:
    """Returns whether a run has several stages, with a plan to continue with."""
    return (folder.path / PLAN_PATH).exists()


def check_chosen(recipe: str, has_epochs: bool) -> None:
    r"""Refuses to train on all facts before epochs and settings are chosen.

    Args:
        recipe (str): The recipe.
        has_epochs (bool): Whether the number of epochs is given.
    """
    if recipe in (*NAMES, NO_RECIPE):
        if recipe in (NO_RECIPE, "paper") and has_epochs:
            return
        raise DataError(
            "--all-facts needs settings that were chosen: train without it first, then "
            "add '--recipe RUN', the folder of that run"
        )
    found = read_recipe(recipe)
    is_chosen = len(found.stages) == len(found.groups)
    if not is_chosen or (len(found.groups) > 1 and found.factors is None):
        raise DataError(
            f"--all-facts needs a recipe with one stage for each expert and with "
            f"factors, as 'kblrn train' writes it ({recipe} has not)"
        )
