"""ES modules as one script, so that a page can run them from a file.

A browser loads no modules from `file://`, and a policy that permits one script by its
digest permits no others. So each module becomes a function that returns what it
exports, called once, after those that it imports. Modules keep to a few forms, which
are checked:

    import { a, b as c } from "./other.js";
    import * as other from "./views/other.js";
    export function f(…) { … }    export const a = …;    export class A { … }
"""

import json
import posixpath
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from algoscope.foundation.validation import InvalidValueError

_IMPORT = re.compile(
    r'^import (?:\{([^}]*)\}|\* as (\w+)) from "(\.{1,2}/[\w./-]+)";$', re.MULTILINE
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.M)
_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\s*\(.*", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """Return one script that runs the module `entry`, given all by their paths.

    Example:
        >>> modules = {
        ...     "one.js": "export const one = 1;",
        ...     "main.js": 'import { one as first } from "./one.js";\\nrun(first);',
        ... }
        >>> print(bundle(modules, "main.js"))
        "use strict";
        const modules = {};
        modules["one.js"] = (() => {
        const one = 1;
        return { one };
        })();
        modules["main.js"] = (() => {
        const { one: first } = modules["one.js"];
        run(first);
        return {  };
        })();
        <BLANKLINE>
    """
    needs: dict[str, set[str]] = {}
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path in needs:
            continue
        if path not in modules:
            raise InvalidValueError("modules", "hold every import", f"'{path}' missing")
        needs[path] = {_resolve(path, m[3]) for m in _IMPORT.finditer(modules[path])}
        waiting += needs[path]
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise InvalidValueError("modules", "have no cycle", error.args[1]) from error
    whole = [_as_function(path, modules[path]) for path in order]
    return "\n".join(['"use strict";', "const modules = {};", *whole, ""])


def _resolve(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _as_function(path: str, source: str) -> str:
    names = ", ".join(_EXPORT.findall(source))

    def assignment(found: re.Match[str]) -> str:
        module = f"modules[{json.dumps(_resolve(path, found[3]))}]"
        if found[2]:
            return f"const {found[2]} = {module};"
        return f"const {{{found[1].replace(' as ', ': ')}}} = {module};"

    body = _EXPORT.sub("", _IMPORT.sub(assignment, source)).rstrip("\n")
    if odd := _OTHER.search(body):
        rule = "import and export in the forms that `bundle` knows"
        raise InvalidValueError(path, rule, odd[0])
    head = f"modules[{json.dumps(path)}] = (() => {{"
    return "\n".join([head, body, f"return {{ {names} }};", "})();"])
