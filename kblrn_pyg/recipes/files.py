"""Recipes as files, JSON or TOML."""

import json
import math
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.lines import read_settings_text
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.recipes.recipe import Recipe, Stage
from kblrn_pyg.rules.settings import RuleSettings
from kblrn_pyg.settings import from_words, in_words
from kblrn_pyg.training.settings import FitSettings

# The name of the file in the folder of a run.
RECIPE_NAME = "recipe.json"
# The folder of the stages within that of a run, and the plan that it goes on with.
STAGES_NAME = "stages"
PLAN_PATH = f"{STAGES_NAME}/plan.json"


def read_recipe(path: PathLike) -> Recipe:
    r"""Reads a recipe.

    Args:
        path (str): A :obj:`.json` or :obj:`.toml` file, or the folder of a run,
            which has a :obj:`recipe.json` with the choices made.
    """
    path = Path(path)
    if path.is_dir():
        path = path / RECIPE_NAME
    try:
        text = read_settings_text(path)
        is_toml = path.suffix.lower() == ".toml"
        content = tomllib.loads(text) if is_toml else json.loads(text)
    except FileNotFoundError:
        raise DataError("no such file, expected a recipe", path) from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not a recipe ({error})", path) from None
    try:
        return recipe_from(content, path.stem)
    except (ValueError, TypeError) as error:
        raise DataError(f"is not a recipe: {error}", path) from None


def recipe_from(content: Any, name: str = "own") -> Recipe:
    r"""Creates a recipe from plain values.

    Args:
        content (dict): The output of :meth:`recipe_values`, or the content of a
            file.
        name (str, optional): Its name, if it has none. (default: :obj:`"own"`)
    """
    values = _checked(content, Recipe, "a recipe")
    stages = values.get("stages")
    if not isinstance(stages, list):
        raise ValueError(f"'stages' must be a list (got {stages!r})")
    values["stages"] = tuple(_stage(one) for one in stages)
    for key, kind in (("name", str), ("why", str), ("factors", dict)):
        if key in values and not isinstance(values[key], kind):
            raise ValueError(f"'{key}' must be a {kind.__name__}")
    number = values.get("most_validated")
    if number is not None and type(number) is not int:
        raise ValueError(f"'most_validated' must be a number (got {number!r})")
    for value in values.get("factors", {}).values():
        for factor in value.values() if isinstance(value, dict) else [value]:
            if isinstance(factor, bool) or not isinstance(factor, int | float):
                raise ValueError(f"'factors' must be numbers (got {factor!r})")
            if not 0 <= factor < math.inf:
                raise ValueError(f"'factors' must not be negative (got {factor})")
    values["factors"] = values.get("factors") or None  # none at all are not chosen yet
    values["rules"] = from_words(RuleSettings, values.get("rules", {}))
    return Recipe(**values | {"name": values.get("name") or name})


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    r"""Returns the plain values of a recipe, as files hold them.

    Args:
        recipe (Recipe): The recipe.
    """
    values = recipe.to_dict()
    if "rules" in values:
        values["rules"] = in_words(RuleSettings, values["rules"])
    for stage in values["stages"]:
        stage["model"] = in_words(ModelSettings, stage["model"])
        stage["training"] = in_words(FitSettings, stage["training"])
    return values


def recipe_text(recipe: Recipe) -> str:
    r"""Returns the JSON text of a recipe.

    Args:
        recipe (Recipe): The recipe.
    """
    return json.dumps(recipe_values(recipe), indent=2, ensure_ascii=False) + "\n"


def write_recipe(recipe: Recipe, path: PathLike) -> None:
    r"""Writes a recipe as JSON.

    Args:
        recipe (Recipe): The recipe.
        path (str): The file.
    """
    write_text(path, recipe_text(recipe))


def _stage(content: Any) -> Stage:
    values = _checked(content, Stage, "a stage")
    if not isinstance(values.get("experts"), str):
        raise ValueError("a stage must have 'experts', a text of letters")
    values["model"] = from_words(ModelSettings, values.get("model", {}))
    values["training"] = from_words(FitSettings, values.get("training", {}))
    return Stage(**values)


def _checked(content: Any, cls: Any, what: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{what} must be values by name (got {content!r})")
    names = [one.name for one in fields(cls)]
    if unknown := [str(name) for name in content if name not in names]:
        raise ValueError(
            f"{what} must have {', '.join(names)} only (got {unknown[0]!r})"
        )
    return dict(content)
