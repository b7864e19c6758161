"""A line chart as SVG: shares against sizes, such as budgets, one line a strategy. Pure.

Lines differ in colour, dashes and marker, and are named where they end, so that nothing rests on colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.evaluation.markup import Markup, joined, tag
from reactor_memory.models import Value

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 44, 110, 14, 40
LABEL_HEIGHT = 14
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 4", "1 4")
MARKERS: tuple[str, ...] = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",  # circle
    "M-3.6 -3.6h7.2v7.2h-7.2z",  # square
    "M0 -4.8L4.6 3.6H-4.6z",  # triangle
    "M0 -5L5 0L0 5L-5 0z",  # diamond
    "M0 4.8L4.6 -3.6H-4.6z",  # triangle upside down
    "M-4 -1.3h2.7v-2.7h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7z",  # cross
)


class Scale(NamedTuple):
    """What the axes say. `tick` writes a share beside the axis, `point` one of a line; sizes have a name and a unit."""

    tick: Callable[[float], str]
    point: Callable[[float], str]
    axis: str
    unit: str


SURVIVAL = Scale("{:.0%}".format, "{:.1%}".format, "tokens of the context", "tokens")


class Line(Value, frozen=True, kw_only=True):
    """The shares of one strategy by budget; under None the share without a budget, which is a level line.

    `style` numbers its colour, dashes and marker.
    """

    name: str
    style: int
    shares: Mapping[int | None, float]

    @property
    def points(self) -> Sequence[tuple[int, float]]:
        return sorted((budget, share) for budget, share in self.shares.items() if budget is not None)

    @property
    def end(self) -> float:
        """The share at the right edge of the chart."""
        return self.points[-1][1] if self.points else self.shares[None]


def line_chart(lines: Sequence[Line], *, name: str, title: str, description: str, scale: Scale = SURVIVAL) -> Markup:
    """The chart. `name` is unique in the page; every line has at least one share. Level lines lie below the others."""
    budgets = sorted({budget for line in lines for budget, _ in line.points})
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *_grid(scale),
        *_budget_axis(budgets, scale),
        *(joined(*_drawn(line, budgets, scale)) for line in sorted(lines, key=lambda line: bool(line.points))),
        *_names(lines),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def key_of(style: int) -> Markup:
    """A short piece of a line with its marker, for a legend."""
    stroke = tag("path", d="M2 7H34", class_="line", stroke_dasharray=_of(DASHES, style))
    marker = tag("path", d=_of(MARKERS, style), class_="marker", transform="translate(18 7)")
    return tag("svg", stroke, marker, viewBox="0 0 36 14", class_=f"key {_colour(style)}", aria_hidden="true")


def _x(budget: int, budgets: Sequence[int]) -> float:
    """Twice the budget is the same step everywhere."""
    width = WIDTH - LEFT - RIGHT
    if len(budgets) == 1:
        return LEFT + width / 2
    return LEFT + width * math.log(budget / budgets[0]) / math.log(budgets[-1] / budgets[0])


def _y(share: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _grid(scale: Scale) -> Iterator[Markup]:
    for share in SHARES:
        y = f"{_y(share):.1f}"
        yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="base" if share == 0 else "grid")
        yield tag("text", scale.tick(share), x=LEFT - 8, y=y, dy="0.32em", text_anchor="end", class_="tick")


def _budget_axis(budgets: Sequence[int], scale: Scale) -> Iterator[Markup]:
    for budget in budgets:
        x = f"{_x(budget, budgets):.1f}"
        yield tag("text", f"{budget:,}", x=x, y=HEIGHT - BOTTOM + 16, text_anchor="middle", class_="tick")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield tag("text", scale.axis, x=middle, y=HEIGHT - 5, text_anchor="middle", class_="axis")


def _drawn(line: Line, budgets: Sequence[int], scale: Scale) -> Iterator[Markup]:
    dashes = _of(DASHES, line.style)
    if not line.points:
        y = f"{_y(line.end):.1f}"
        path = f"M{LEFT} {y}H{WIDTH - RIGHT}"
        yield tag("path", d=path, class_=f"line {_colour(line.style)}", stroke_dasharray=dashes)
        return
    places = [(_x(budget, budgets), _y(share)) for budget, share in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield tag("path", d=path, class_=f"line {_colour(line.style)}", stroke_dasharray=dashes)
    for (x, y), (budget, share) in zip(places, line.points, strict=True):
        told = tag("title", f"{line.name}, {budget:,} {scale.unit}: {scale.point(share)}")
        shape = _of(MARKERS, line.style)
        yield tag(
            "path", told, d=shape, class_=f"marker {_colour(line.style)}", transform=f"translate({x:.1f} {y:.1f})"
        )


def _names(lines: Sequence[Line]) -> Iterator[Markup]:
    """Each line's name beside its end; names that would lie on each other move apart."""
    ordered = sorted(lines, key=lambda line: (-line.end, line.style))
    for line, y in zip(ordered, apart([_y(line.end) for line in ordered]), strict=True):
        yield tag(
            "text", line.name, x=WIDTH - RIGHT + 10, y=f"{y:.1f}", dy="0.32em", class_=f"name {_colour(line.style)}"
        )


def apart(heights: Sequence[float]) -> list[float]:
    """The heights, in ascending order, moved as little as it takes to leave `LABEL_HEIGHT` between neighbours and to
    stay above the axis.
    """
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + LABEL_HEIGHT) if placed else height)
    lowest = float(HEIGHT - BOTTOM)
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], lowest)
        lowest = placed[index] - LABEL_HEIGHT
    return placed


def _colour(style: int) -> str:
    return f"s{style % len(DASHES)}"


def _of(choices: Sequence[str], style: int) -> str:
    return choices[style % len(choices)]
