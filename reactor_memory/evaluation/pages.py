"""What the pages of results share: the frame, its style, and tables of numbers. Pure.

A page needs nothing else, loads nothing and runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from reactor_memory.evaluation.markup import Markup, tag

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1d2129; --soft: #5a6270; --rule: #e2e4e8;
  --c0: #0072b2; --c1: #c2410c; --c2: #00795a; --c3: #a4387f; --c4: #7a6200; --c5: #4b5563; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --card: #1c1f25; --ink: #e8eaee; --soft: #a2a9b5;
  --rule: #333842; --c0: #6bb8f0; --c1: #ff9a66; --c2: #4fd0a5; --c3: #ef9fd2; --c4: #e0c65a; --c5: #b4bcc8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 3rem 0 1rem; padding-top: 1rem; border-top: 2px solid var(--rule);
  overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: 0 0 1rem; max-width: 46rem; color: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; list-style: none; margin: 1.25rem 0 0; padding: 0; }
.key { width: 36px; height: 14px; margin-right: .5rem; vertical-align: -1px; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem; }
figure { margin: 0; padding: 1rem 1.1rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: 10px; min-width: 0; }
figure > svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg .name { font-weight: 600; }
.grid { stroke: var(--rule); } .base { stroke: var(--soft); }
.line { fill: none; stroke: var(--c); stroke-width: 2.25; stroke-linejoin: round; }
.marker { fill: var(--c); stroke: var(--card); stroke-width: 1.5; }
svg text.name { fill: var(--c); }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); }
.s3 { --c: var(--c3); } .s4 { --c: var(--c4); } .s5 { --c: var(--c5); }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .84rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 1.5rem 0 .4rem; }
figure caption { font-weight: 400; color: var(--soft); padding-top: .5rem; }
th, td { padding: .28rem .6rem .28rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 500; }
.word { text-align: left; }
.bad td, .bad th { color: var(--c1); font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .9rem; margin: 2rem 0 0; }
dt { font-weight: 600; } dd { margin: 0; color: var(--soft); }
</style>
</head>
"""


def page(title: str, body: Markup) -> str:
    """The whole page around its body."""
    return f"{_FRAME.replace('{title}', escape(title))}{body}\n</html>\n"


def numbers_table(caption: str, head: Markup, body: Iterable[Markup]) -> Markup:
    """A table that scrolls by itself where it is wider than the page, by keyboard too."""
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label=caption)


def head_cell(name: str, *, word: bool = False) -> Markup:
    """The name of a column, of words or of numbers."""
    return tag("th", name, scope="col", **({"class_": "word"} if word else {}))


def cell_of(text: str, *, word: bool = False) -> Markup:
    return tag("td", text, **({"class_": "word"} if word else {}))
