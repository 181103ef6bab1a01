"""Recipes as TOML files: strict reading (an unknown key is an error) and lossless writing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from twinvec.choices import NetworkKind
from twinvec.data.roles import DataSource
from twinvec.errors import InputError, UnknownNameError, check_name
from twinvec.training.objectives import NETWORK_OBJECTIVES
from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings, as_tuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["read_recipe", "recipe_as_toml", "with_absolute_paths", "with_file_names"]

SECTIONS = ("model", "training", "data", "dev", "test")
DEV_KIND = "scored_pairs"


def read_recipe(path: Path, *, trust_pickle: bool = False) -> Recipe:
    """Read a recipe. Paths in it are relative to the folder of the recipe.

    A recipe may come from someone else, so only the caller can allow reading a pickle, with ``trust_pickle``.
    """
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"Cannot read the recipe {str(path)!r:.200}: {reason}.") from error
    try:
        content = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, too many digits or levels
        raise InputError(f"{path} is not valid TOML: {error}.") from error
    try:
        recipe = parse_recipe(content, path.parent)
    except TypeError as error:  # such as a string for a number
        raise InputError(f"{path} has a value of the wrong type: {error}.") from error
    if recipe.model.trust_pickle and not trust_pickle:
        raise InputError(
            f"The recipe {path} starts from weights stored as a pickle, which can run code.",
            hint="If you trust its start model, use --trust-pickle, or trust_pickle=True in Python.",
        )
    return replace(recipe, model=replace(recipe.model, trust_pickle=trust_pickle))


def parse_recipe(content: Mapping[str, Any], root: Path) -> Recipe:
    """Build a recipe from the tables of a TOML file."""
    _check_keys("section of a recipe", content, SECTIONS)
    if "model" not in content or not content.get("data"):
        raise InputError("A recipe requires a section [model] and at least one [[data]].")
    for name in ("data", "test"):
        if not isinstance(content.get(name, []), list):
            raise InputError(f"A recipe can have several data sets: write [[{name}]], not [{name}].")
    _check_keys("key in [model]:", content["model"], _names(ModelPart))
    model = dict(content["model"])
    if "start" not in model:
        raise InputError("The section [model] requires 'start': the folder or name of the model to start from.")
    _check_keys("key in [training]:", content.get("training", {}), _names(TrainSettings))
    dev = content.get("dev")
    start = ModelPart(**model | {"start": _model(model["start"], root, "start")})
    return Recipe(
        model=start,
        data=tuple(_data(part, root, start.network) for part in content["data"]),
        training=TrainSettings(**content.get("training", {})),
        dev=None if dev is None else _dev(dev, root),
        test=tuple(_source(_as_table(part, "[[test]]"), root, where="[[test]]") for part in content.get("test", ())),
    )


def _data(part: Mapping[str, Any], root: Path, network: NetworkKind) -> DataPart:
    rest = _as_table(part, "[[data]]")
    objective = rest.pop("objective", None)
    check_name(f"objective of a {network} in [[data]]:", objective, NETWORK_OBJECTIVES[network])
    own = {name: rest.pop(name) for name in _names(DataPart) if name in rest}
    if "miner" in own:
        own["miner"] = _model(own["miner"], root, "miner")
    if "teachers" in own:
        own["teachers"] = tuple(_model(name, root, "teachers") for name in as_tuple(own["teachers"], "teachers"))
    kind = NETWORK_OBJECTIVES[network][str(objective)]
    rest.setdefault("kind", kind.taught[0] if own.get("teachers") and kind.taught else kind.examples)
    return DataPart(source=_source(rest, root, where="[[data]]"), objective=str(objective), **own)


def _dev(part: Mapping[str, Any], root: Path) -> DevPart:
    rest = _as_table(part, "[dev]")
    own = {name: rest.pop(name) for name in _names(DevPart) if name in rest}
    return DevPart(source=_source(rest, root, where="[dev]"), **own)


def _source(part: dict[str, Any], root: Path, *, where: str) -> DataSource:
    _check_keys(f"key in {where}:", part, _names(DataSource))
    if "file" not in part:
        raise InputError(f"{where} requires a 'file'.")
    columns = _as_table(part.pop("columns", {}), f"columns of {where}")
    lists = {
        name: as_tuple(part.pop(name), name) for name in ("labels", "ignore_labels", "score_range") if name in part
    }
    file = root / _name(part.pop("file"), "file")
    return DataSource(**{"kind": DEV_KIND} | part | {"file": str(file), "columns": columns} | lists)


def _as_table(found: object, where: str) -> dict[str, Any]:
    if not isinstance(found, Mapping):
        raise InputError(f"In the recipe, {where} is {found!r:.40}, not a table.", hint="See docs/train.md.")
    return dict(found)


def _model(name: object, root: Path, key: str) -> str:
    """The path of a folder or file next to the recipe, or the name of a model."""
    text = _name(name, key)
    return str(root / text) if os.path.exists(root / text) else text  # also False for an impossible name


def _name(value: object, key: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{key} must be a name, got {value!r:.60}.")
    return value


def _names(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a dataclass
    return tuple(each.name for each in fields(kind) if each.name not in ("source", "objective"))


def _check_keys(kind: str, found: object, known: tuple[str, ...]) -> None:
    if not isinstance(found, Mapping):
        raise InputError(f"The {kind.rstrip(':')} is {found!r:.40}, not a table.")
    for name in found:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def with_absolute_paths(recipe: Recipe) -> Recipe:
    """The recipe with absolute paths."""
    return _with_paths(recipe, lambda path: str(Path(path).absolute()) if Path(path).exists() else str(path))


def with_file_names(recipe: Recipe) -> Recipe:
    """The recipe with file and folder names instead of paths, for publishing and comparing."""
    return _with_paths(recipe, lambda path: Path(path).name if Path(path).exists() else str(path))


def _with_paths(recipe: Recipe, change: Callable[[str | Path], str]) -> Recipe:
    def moved(source: DataSource) -> DataSource:
        return replace(source, file=change(source.file))

    return replace(
        recipe,
        model=replace(recipe.model, start=change(recipe.model.start)),
        data=tuple(
            replace(
                part,
                source=moved(part.source),
                teachers=tuple(change(name) for name in part.teachers),
                miner=change(part.miner),
            )
            for part in recipe.data
        ),
        dev=None if recipe.dev is None else replace(recipe.dev, source=moved(recipe.dev.source)),
        test=tuple(moved(source) for source in recipe.test),
    )


def recipe_as_toml(recipe: Recipe) -> str:
    """The recipe as TOML, without defaults; reading it returns an equal recipe."""
    blocks = [_table("[model]", _changed(recipe.model)), _table("[training]", _changed(recipe.training))]
    for part in recipe.data:
        own = {"objective": part.objective} | {name: v for name, v in _changed(part).items() if name != "source"}
        blocks.append(_table("[[data]]", own | _changed(part.source)))
    if recipe.dev is not None:
        own = {name: value for name, value in _changed(recipe.dev).items() if name != "source"}
        blocks.append(_table("[dev]", own | _changed(recipe.dev.source)))
    blocks += [_table("[[test]]", _changed(source)) for source in recipe.test]
    return "\n".join(blocks)


def _changed(settings: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """The values that differ from their defaults."""
    found = {}
    for each in fields(settings):
        value = getattr(settings, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != default:
            found[each.name] = value
    return found


def _table(head: str, values: Mapping[str, Any]) -> str:
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
    return "\n".join([head, *lines, ""])


def _toml(value: object) -> str:
    """A value as TOML; JSON strings, numbers and lists are valid TOML.

    >>> _toml({"margin": 1.0, "names": ("a", "b")})
    '{ "margin" = 1.0, "names" = ["a", "b"] }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
