"""A route as a picture: all streets in grey, the way in colour, as SVG."""

from __future__ import annotations

from examples.maps.graph import streets_of
from examples.maps.streets import Town

WIDTH_PX = 900
MARGIN_PX = 12


def picture(town: Town, nodes: list[int], title: str) -> str:
    """An SVG document of a town and a way in it; `nodes` are the town's."""
    left, right = float(town.x.min()), float(town.x.max())
    low, high = float(town.y.min()), float(town.y.max())
    scale = (WIDTH_PX - 2 * MARGIN_PX) / max(1.0, right - left)
    height = round((high - low) * scale) + 2 * MARGIN_PX

    def point(node: int) -> str:
        across = (town.x[node] - left) * scale + MARGIN_PX
        down = (high - town.y[node]) * scale + MARGIN_PX
        return f"{across:.1f},{down:.1f}"

    tails, heads, _ = streets_of(town.graph)
    streets = "".join(
        f"M{point(item)}L{point(other)}"
        for item, other in zip(tails.tolist(), heads.tolist(), strict=True)
    )
    way = " ".join(point(node) for node in nodes)
    ends = "".join(
        f'<circle cx="{x}" cy="{y}" r="6" fill="{colour}"/>'
        for (x, y), colour in zip(
            (point(node).split(",") for node in (nodes[:1] + nodes[-1:])),
            ("#1b7837", "#b2182b"),
            strict=False,
        )
    )
    safe = title.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height}">'
        f"<title>{safe}</title>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<path d="{streets}" fill="none" stroke="#b8b8b8" stroke-width="1"/>'
        f'<polyline points="{way}" fill="none" stroke="#2166ac" stroke-width="3.5" '
        f'stroke-linejoin="round" stroke-linecap="round"/>{ends}</svg>\n'
    )
