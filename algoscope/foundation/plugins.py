"""Plug-ins: predictors, tasks and families that other installed packages add.

A package lists them as entry points in its pyproject.toml, in one of the `GROUPS`
(docs/how_to_add_a_predictor.md). Their names are read from the metadata of installed
packages; a plug-in's code is imported when it is used, and never for help. What comes
with algoscope keeps its name: a plug-in of the same name is not found.
"""

import traceback
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from algoscope.foundation.user_code import describe

PREDICTORS = "algoscope.predictors"
TASKS = "algoscope.tasks"
FAMILIES = "algoscope.families"
GROUPS = {PREDICTORS: "predictor", TASKS: "task", FAMILIES: "family"}


class PluginError(Exception):
    """A plug-in that does not work; the message is a sentence that names it."""


@cache
def installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the plug-ins of a group, sorted by name, without importing any."""
    return tuple(sorted(entry_points(group=group), key=lambda each: each.name))


def names_with_plugins(group: str, own: Iterable[str]) -> list[str]:
    """Return the names that come with algoscope and those of plug-ins, each once.

    Example:
        >>> names_with_plugins("no.such.group", ["ols", "ridge"])
        ['ols', 'ridge']
    """
    return list(dict.fromkeys([*own, *(each.name for each in installed(group))]))


def load_plugin(group: str, name: str) -> Any:
    """Return what the plug-in of this name is, importing its package."""
    found = {each.value: each for each in installed(group) if each.name == name}
    if len(found) > 1:
        packages = " and ".join(_package(each) for each in found.values())
        raise PluginError(
            f"The {GROUPS[group]} '{name}' is a plug-in of {packages}. Uninstall one."
        )
    (plugin,) = found.values()
    try:
        return plugin.load()
    except (Exception, SystemExit) as error:
        raise broken(plugin, f"cannot be loaded: {describe(error)}") from error


def broken(plugin: EntryPoint, why: str) -> PluginError:
    """Return the error that names a plug-in and says what is wrong with it."""
    kind = GROUPS[plugin.group]
    return PluginError(
        f"The {kind} '{plugin.name}', a plug-in of {_package(plugin)}, {why}."
    )


def plugin_named(group: str, name: str) -> EntryPoint:
    """Return the plug-in of this name, which is not imported."""
    return next(each for each in installed(group) if each.name == name)


def blame(error: BaseException) -> PluginError | None:
    """Return the error of the plug-in in whose code something was raised, if any."""
    files = traceback.walk_tb(error.__traceback__)
    modules = {str(frame.f_globals.get("__name__")) for frame, _ in files}
    for group in GROUPS:
        for plugin in installed(group):
            if any(_is_inside(module, plugin.module) for module in modules):
                return broken(plugin, f"failed: {describe(error)}")
    return None


def _is_inside(module: str, home: str) -> bool:
    package = home.partition(".")[0]
    return package != "algoscope" and module.partition(".")[0] == package


def _package(plugin: EntryPoint) -> str:
    if plugin.dist is None:
        return "an unknown package"
    return f"the package {plugin.dist.name} {plugin.dist.version}"
