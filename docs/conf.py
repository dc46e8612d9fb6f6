"""The documentation site: ``make docs`` builds it."""

import re
from pathlib import Path

from docutils.nodes import SkipNode, math, math_block
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import kblrn_pyg

project = "kblrn_pyg"
author = "the authors of kblrn_pyg"
version = release = kblrn_pyg.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["README.md"]  # the list of pages on a code host
html_theme = "furo"
html_title = f"kblrn_pyg {version}"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are committed with their output

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings have the types
autodoc_preserve_defaults = True
napoleon_use_rtype = False
napoleon_use_ivar = True

html_math_renderer = "mathml"  # which browsers draw without scripts of others

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")


_SIZES = re.compile(r"\\[Bb]igg?[lr]?(?![A-Za-z])")


def _name_files_outside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Writes links to files of the repository as their names."""

    def name(match: re.Match[str]) -> str:
        text, path = match[1], match[2]
        return text if path in text else f"{text} (`{path}`)"

    source[0] = _OUTSIDE.sub(name, source[0])


def _add_further_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Adds the pages that the table of contents does not mention to its end."""
    if docname != "index":
        return
    folder = Path(str(app.srcdir))
    pages = {path.stem for path in folder.glob("*.md")} - {"README", "index"}
    missing = [page for page in sorted(pages) if f"\n{page}\n" not in source[0]]
    source[0] = source[0].replace("\nfurther pages\n", "\n".join(["", *missing, ""]))


def _formula(tex: str, as_block: bool) -> str:
    """Returns a formula as MathML, in which brackets grow by themselves."""
    tex = _SIZES.sub("", tex.strip())
    if as_block and "&" in tex and r"\begin" not in tex:
        lines = re.sub(r"\n\s*\n", r"\\\\ ", tex)
        tex = rf"\begin{{aligned}} {lines} \end{{aligned}}"
    return tex2mathml(tex, as_block=as_block)


def _visit_math(translator: HTML5Translator, node: math) -> None:
    translator.body.append(_formula(node.astext(), as_block=False))
    raise SkipNode


def _visit_math_block(translator: HTML5Translator, node: math_block) -> None:
    formula = _formula(node.astext(), as_block=True)
    style = "overflow: auto hidden; padding: 0.4em 0"
    translator.body.append(f'<div style="{style}">{formula}</div>')
    raise SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math_block, None))
    app.connect("source-read", _name_files_outside)
    app.connect("source-read", _add_further_pages)
