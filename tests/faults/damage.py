"""Damage to a file, drawn at random: as edits, which a corpus can keep.

A file is seen as a tree where it has one (JSON, YAML, arrays with their metadata) and
as bytes everywhere. An edit is a list: a verb and its arguments. Arrays are signed
again after an edit of their tree, so what lies behind the digest is reached too.
"""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from hypothesis import strategies as st

from algoscope.foundation.files import digest_of_arrays

Edit = list[Any]
Tree = Any

DEEP, DEPTH = "@deep@", 100_000
NUMBERS = (0, -1, 1, 2, 7, 0.5, -0.0, 1e-320, 1e308, 10**20, 10**400)
NUMBERS += (float("inf"), float("-inf"), float("nan"), 2**31, 2**63)
TEXTS = ("", "x", "NaN", "Infinity", "1", "\x1b[2J\n", "\ud800", "\x00", "x" * 5000)
TEXTS += ("../../etc/passwd", "/dev/null", "{}", "float64", "ols", DEEP)
EMPTY = ([], {}, [[]], [None], {"": 0}, [0, 1], ["a", "b"], {"mean": 0})
SHAPES = ([], [0], [1], [2, 3], [7], [1, 1, 1, 1], [-1], [10**9, 10**9], "x", None)
JUNK = (b"", b"\xff\xfe", b"\x00" * 64, b"{", b"[]", b"null", b"{}", b"[" * DEPTH)
JUNK += (b'{"a":' * DEPTH, b"1" * 5000, b"\n" * 999, b"PK\x03\x04", b"\x93NUMPY")
MOST_NUMBERS = 10**6  # in an array that an edit enlarges

values = st.one_of(
    st.sampled_from([None, True, False, *NUMBERS, *TEXTS, *EMPTY]),
    st.integers(-3, 300),
    st.floats(),
    st.text(st.characters(codec=None, categories=None), max_size=12),
)
fractions = st.floats(0, 1, exclude_max=True)


def edits_of(name: str, content: bytes) -> st.SearchStrategy[list[Edit]]:
    """Return lists of edits of a file, by the tree that its content is."""
    kinds = [
        st.tuples(st.just("cut"), fractions),
        st.tuples(st.just("flip"), fractions, st.integers(1, 255)),
        st.tuples(st.just("insert"), fractions, st.sampled_from(JUNK).map(bytes.hex)),
        st.tuples(st.just("drop"), fractions, st.integers(1, 40)),
        st.tuples(st.just("whole"), st.sampled_from(JUNK).map(bytes.hex)),
    ]
    odd = st.sampled_from([["missing"], ["directory"], ["link"]]).map(tuple)
    tree = tree_of(name, content)
    if tree is not None:
        paths = st.sampled_from(list(paths_in(tree)))
        own = [
            st.tuples(st.just("set"), paths, values),
            st.tuples(st.just("delete"), paths),
            st.tuples(st.just("rename"), paths, st.sampled_from(TEXTS[:-1])),
            st.tuples(st.just("copy"), paths, paths),
        ]
        if name.endswith(".safetensors"):
            shapes = [path for path in paths_in(tree) if path[-1] == "shape"]
            own.append(
                st.tuples(
                    st.just("set"), st.sampled_from(shapes), st.sampled_from(SHAPES)
                )
            )
        one = st.one_of(*own, *own, *kinds[:4])  # which behind its digest is rare
    elif name.endswith(".pt"):
        inside = st.one_of(*kinds[:4]).map(lambda edit: ("inside", *edit))
        one = st.one_of(inside, inside, *kinds[:4])
    else:
        one = st.one_of(*kinds[:4])
    some = st.lists(one, min_size=1, max_size=3)
    whole = st.one_of(kinds[4], odd).map(lambda edit: [edit])
    return st.one_of(some, some, some, some, whole).map(
        lambda edits: [list(edit) for edit in edits]
    )


def damage(path: Path, content: bytes, edits: list[Edit]) -> None:
    """Write the content with these edits to the path."""
    for verb, *arguments in edits:
        if verb == "missing":
            return
        if verb == "directory":
            path.mkdir()
            return
        if verb == "link":
            path.symlink_to("/dev/null")
            return
        change = _TREE.get(verb)
        if change is None:
            content = _BYTES[verb](content, *arguments)
            continue
        tree = tree_of(path.name, content)
        if tree is not None:
            change(tree, *arguments)
            content = content_of(path.name, tree, content)
    path.write_bytes(content)


def tree_of(name: str, content: bytes) -> Tree:
    """Return the tree that a file holds, or None."""
    try:
        if name.endswith(".safetensors"):
            return _tree_of_arrays(content)
        if name.endswith(".yaml"):
            import yaml

            return [yaml.safe_load(content)]
        if name.endswith(".jsonl"):
            return [[json.loads(line) for line in content.splitlines()]]
        if name.endswith((".json", ".reply")):
            return [json.loads(content)]
    except Exception:  # it is damaged already
        return None
    return None


def content_of(name: str, tree: Tree, before: bytes) -> bytes:
    """Return the file that holds a tree."""
    if name.endswith(".safetensors"):
        return _content_of_arrays(tree, before)
    if not tree:
        return b""
    if name.endswith(".jsonl") and isinstance(tree[0], list):
        text = "\n".join(map(json.dumps, tree[0])) + "\n"
    else:
        text = json.dumps(tree[0])  # which is YAML too
    return text.replace(json.dumps(DEEP), "[" * DEPTH).encode()


def paths_in(tree: Tree, path: tuple[Any, ...] = ()) -> Iterator[list[Any]]:
    """Yield the path of every node below the root; of long lists, of some."""
    items: Any = ()
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
        items = items[:4] + items[-1:] if len(items) > 5 else items
    for key, child in items:
        yield [*path, key]
        yield from paths_in(child, (*path, key))


def _parent(tree: Tree, path: list[Any]) -> Tree:
    """Return the node above, or an empty one if earlier edits have removed it."""
    for key in path[:-1]:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return {}
    return tree if isinstance(tree, (dict, list)) else {}


def _set(tree: Tree, path: list[Any], value: Any) -> None:
    parent = _parent(tree, path)
    if isinstance(parent, dict) or _has(parent, path[-1]):
        parent[path[-1]] = value


def _has(parent: Tree, key: Any) -> bool:
    if isinstance(parent, dict):
        return key in parent
    return isinstance(key, int) and key < len(parent)


def _delete(tree: Tree, path: list[Any]) -> None:
    parent = _parent(tree, path)
    if _has(parent, path[-1]):
        del parent[path[-1]]


def _rename(tree: Tree, path: list[Any], name: str) -> None:
    parent = _parent(tree, path)
    if isinstance(parent, dict) and path[-1] in parent:
        parent[name] = parent.pop(path[-1])


def _copy(tree: Tree, path: list[Any], source: list[Any]) -> None:
    parent = _parent(tree, source)
    if _has(parent, source[-1]):
        _set(tree, path, json.loads(json.dumps(parent[source[-1]])))


_TREE = {"set": _set, "delete": _delete, "rename": _rename, "copy": _copy}


def _flip(content: bytes, where: float, bits: int) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[int(where * len(changed))] ^= bits
    return bytes(changed)


def _insert(content: bytes, where: float, junk: str) -> bytes:
    place = int(where * len(content))
    return content[:place] + bytes.fromhex(junk) + content[place:]


def _drop(content: bytes, where: float, count: int) -> bytes:
    place = int(where * len(content))
    return content[:place] + content[place + count :]


_BYTES: dict[str, Callable[..., bytes]] = {
    "cut": lambda content, where: content[: int(where * len(content))],
    "flip": _flip,
    "insert": _insert,
    "drop": _drop,
    "whole": lambda content, junk: bytes.fromhex(junk),
}


def _tree_of_arrays(content: bytes) -> Tree:
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    arrays = safetensors.numpy.load(content)
    return {
        "metadata": {key: _parsed(text) for key, text in metadata.items()},
        "arrays": {
            name: {"dtype": str(each.dtype), "shape": list(each.shape), "fill": None}
            for name, each in arrays.items()
        },
    }


def _parsed(text: str) -> Any:
    """Return the tree in a text of the metadata, or the text."""
    return json.loads(text) if text.startswith(("{", "[")) else text


def _content_of_arrays(tree: Tree, before: bytes) -> bytes:
    known = safetensors.numpy.load(before)
    arrays = {}
    for name, about in _items(tree.get("arrays")):
        try:
            source = known.get(name, np.zeros(1))
            shape = [int(size) for size in about["shape"]]
            if math.prod(shape) > MOST_NUMBERS:
                continue
            with np.errstate(all="ignore"):
                array = np.resize(source, shape).astype(np.dtype(about["dtype"]))
                if about["fill"] is not None:
                    array[...] = about["fill"]
            if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
                arrays[str(name)] = np.ascontiguousarray(array)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue  # no array can be so: it is left out
    metadata = {
        str(key): text if isinstance(text, str) else json.dumps(text)
        for key, text in _items(tree.get("metadata"))
    }
    metadata = {
        key.replace("\ud800", "?"): text.replace("\ud800", "?").replace(
            json.dumps(DEEP), "[" * DEPTH
        )
        for key, text in metadata.items()
    }
    arrays = {name.replace("\ud800", "?"): each for name, each in arrays.items()}
    if "sha256" in metadata:
        metadata["sha256"] = digest_of_arrays(arrays)
    return safetensors.numpy.save(arrays, metadata=metadata)


def _items(node: Tree) -> Any:
    return list(node.items()) if isinstance(node, dict) else []


def _inside(content: bytes, verb: str, *arguments: Any) -> bytes:
    """Return a zip with an edit of the pickle in it: a .pt file."""
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            records = {each: archive.read(each) for each in archive.namelist()}
    except Exception:  # it is damaged already
        return content
    with zipfile.ZipFile(out, "w") as archive:
        for name, record in records.items():
            is_program = name.endswith("data.pkl")
            edited = _BYTES[verb](record, *arguments) if is_program else record
            archive.writestr(name, edited)
    return out.getvalue()


_BYTES["inside"] = _inside
