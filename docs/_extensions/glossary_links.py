"""Links from every page to the glossary: the first time that it uses a term.

Pages are read in a repository too, where a link at every special word would be noise.
So they are written without, and the site adds them.
"""

import re

from docutils import nodes
from sphinx.addnodes import desc
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

GLOSSARY = "glossary"
# No links inside links, headings and code, nor where autodoc describes an object.
ELSEWHERE = (
    nodes.reference,
    nodes.title,
    nodes.literal,
    nodes.literal_block,
    nodes.raw,
    nodes.math,
    nodes.math_block,
    nodes.term,
    nodes.rubric,
    nodes.doctest_block,
    desc,
)
# Words that have an entry, but are ordinary English on most pages.
ORDINARY = {
    *("control", "domain", "example", "floor", "place", "preset", "program"),
    *("reference", "run"),
}


def labels(env: BuildEnvironment) -> dict[str, str]:
    """Return the label of each term of the glossary, in singular and plural."""
    return {
        form: label
        for (kind, name), (page, label) in env.domaindata["std"]["objects"].items()
        if kind == "term" and page == GLOSSARY and name not in ORDINARY
        for form in (name, plural(name))
    }


def plural(term: str) -> str:
    """Return the plural of a term: queries, prefixes, probes."""
    if re.search("[^aeiou]y$", term):
        return f"{term[:-1]}ies"
    return f"{term}{'es' if term.endswith('x') else 's'}"


def link_terms(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Turn the first use of each term in a page into a link."""
    left = labels(app.env)
    if page == GLOSSARY or not left:
        return
    longest_first = "|".join(map(re.escape, sorted(left, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w-])({longest_first})(?![\w-])")
    address = app.builder.get_relative_uri(page, GLOSSARY)
    for text in list(tree.findall(nodes.Text)):
        if _inside(text, ELSEWHERE):
            continue
        parts: list[nodes.Node] = []
        start = 0
        for found in pattern.finditer(text):
            label = left.get(found[0])
            if label is None:
                continue
            for other in [k for k, v in left.items() if v == label]:
                del left[other]  # all forms of the word
            parts.append(nodes.Text(text[start : found.start()]))
            link = nodes.reference(
                "", found[0], internal=True, refuri=f"{address}#{label}"
            )
            link["classes"].append("term-link")
            parts.append(link)
            start = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[start:])])


def _inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the links when the pages are written."""
    app.connect("doctree-resolved", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
