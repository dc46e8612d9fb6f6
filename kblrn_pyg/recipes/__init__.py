"""Recipes: complete settings that train a good model without options."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.recipes.apply import RecipeResult, train_by_recipe
    from kblrn_pyg.recipes.budget import parse_budget
    from kblrn_pyg.recipes.control import control_by_recipe
    from kblrn_pyg.recipes.device import find_device
    from kblrn_pyg.recipes.files import read_recipe, recipe_text, write_recipe
    from kblrn_pyg.recipes.named import PAPER
    from kblrn_pyg.recipes.recipe import Recipe, Stage
    from kblrn_pyg.recipes.tuning import TuneResult, tune
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "PAPER",
    "Recipe",
    "RecipeResult",
    "Stage",
    "TuneResult",
    "control_by_recipe",
    "find_device",
    "parse_budget",
    "read_recipe",
    "recipe_text",
    "train_by_recipe",
    "tune",
    "write_recipe",
]
