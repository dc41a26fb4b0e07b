"""Figures of pools, streams and errors: walks, memory maps, timelines, distributions of errors."""

import math

from ..errors import Errors
from ..evidence import Claim
from .figure import GIB, Axis, Box, Figure, Line, Rule, file_name, time_scale
from ..tables import Rows
from ..walks import FLOOR, Walk
from ..words import counted

MAP_LANES = 24
PLACE_LANES, PLACE_COLUMNS = 48, 120


def walk_figure(walk: Walk) -> Figure:
    """The bytes that a pool held and the bytes requested from it, over the steps of a walk."""
    steps = [float(row["step"]) for row in walk.rows]
    scale, unit = (GIB, "GiB") if walk.rows and max(
        row["held"] for row in walk.rows) >= GIB else (float(1 << 20), "MiB")
    held = [row["held"] / scale for row in walk.rows]
    asked = [row["requested"] / scale for row in walk.rows]
    title = f"{walk.claim} {walk.attack.replace('_', ' ')}: {walk.name.replace('_', ' ')}"
    return Figure(
        file_name(walk.claim, "walk", walk.attack, walk.name), title,
        f"{title}. Bytes held and bytes requested over "
        f"{counted(len(steps), 'samples')}, {held[-1]:.3g} and {asked[-1]:.3g} {unit} "
        f"at the end; worst ratio {walk.worst():.4g}.",
        Axis("step"), Axis(unit, low=0.0),
        [Line("held", steps, held, 1), Line("requested", steps, asked, 0)])


def ratio_figure(claim: Claim, attack: str, walks: list[Walk]) -> Figure:
    """The ratio of held to requested bytes, for all walks of an attack."""
    threshold = claim.result["threshold"]
    lines = [Line(walk.name.replace("_", " "), [float(row["step"]) for row in walk.rows],
                  walk.ratios(FLOOR), index) for index, walk in enumerate(walks[:6])]
    worst = max(walk.worst() for walk in walks)
    title = f"{claim.id} {attack.replace('_', ' ')}: bytes held / requested"
    values = sorted(v for line in lines for v in line.y if v == v)
    top = max(threshold * 1.05, values[len(values) * 99 // 100] if values else 1.0)
    return Figure(file_name(claim.id, "ratio", attack), title,
                  f"Fragmentation over time. {title}, {counted(len(walks), 'walks')}, "
                  f"at steps with at least "
                  f"{FLOOR:.0%} of the peak live; worst ratio {worst:.4g}, threshold "
                  f"{threshold:g}.", Axis("step"), Axis("ratio", low=0.98, high=top), lines,
                  [Rule(threshold, f"threshold {threshold:g}", strong=True)])


def of_walks(claim: Claim) -> tuple[list[Figure], list[Figure]]:
    """For each attack the ratios of all its walks, and the bytes of the worst walk. First the
    attacks that the verdict depends on, then the others."""
    judging = {m["attack"] for m in claim.measures if not m["recorded_only"]}
    attacks: dict[str, list[Walk]] = {}
    for walk in claim.tables.walks:
        attacks.setdefault(walk.attack, []).append(walk)
    judged: list[Figure] = []
    beside: list[Figure] = []
    for attack, walks in attacks.items():
        (judged if attack in judging else beside).extend(
            (ratio_figure(claim, attack, walks), walk_figure(max(walks, key=Walk.worst))))
    return judged, beside


STATES = {"live": 0, "cached": 4, "free": 5, "pending": 3}


def map_figure(claim: Claim, table: Rows) -> Figure:
    """Addresses from left to right and then downwards, like lines on a page."""
    blocks = sorted((int(a), int(b), state) for a, b, state in table.rows)
    pages: list[tuple[int, int, str, int]] = []  # without the gaps between ranges
    at = 0
    for address, size, state in blocks:
        if pages and pages[-1][2] == state:  # adjacent ranges of one state are one box
            pages[-1] = (pages[-1][0], at + size, state, pages[-1][3])
        else:
            pages.append((at, at + size, state, address))
        at += size
    lane_bytes = max(1, math.ceil(at / MAP_LANES))
    boxes, few = [], len(pages) <= 200  # more labels would dominate the page
    for begin, end, state, address in pages:
        while begin < end:
            lane = begin // lane_bytes
            stop = min(end, (lane + 1) * lane_bytes)
            boxes.append(Box((begin - lane * lane_bytes) / (1 << 20),
                             (stop - lane * lane_bytes) / (1 << 20), -lane,
                             STATES.get(state, 2),
                             f"{state}, from address {address:#x}" if few else ""))
            begin = stop
    live = sum(size for _, size, state in blocks if state == "live")
    names = sorted({state for _, _, state in blocks}, key=lambda state: STATES.get(state, 2))
    key = [Line(name, [-1.0], [math.nan], STATES.get(name, 2), "dots") for name in names]
    title = f"{claim.id} {table.attack.replace('_', ' ')}: {table.name.replace('_', ' ')}"
    return Figure(file_name(claim.id, "map", table.attack, table.name), title,
                  f"Memory map. {title}: {counted(len(blocks), 'ranges')}, "
                  f"{live / max(1, at):.1%} of {at / (1 << 20):.0f} MiB live.",
                  Axis("MiB", low=0.0, high=lane_bytes / (1 << 20)),
                  Axis("address, increasing downwards", ticks=[]), key, boxes=boxes)


def without_gaps(blocks: list[list[int]]) -> list[tuple[int, int, int, int]]:
    """First and last step, and where a block begins and ends, without what no block ever used."""
    edges = sorted({edge for _, _, address, size in blocks for edge in (address, address + size)})
    ends = sorted((address, address + size) for _, _, address, size in blocks)
    places, at, end, seen = {}, 0, 0, 0
    for low, high in zip(edges, [*edges[1:], edges[-1]]):
        while seen < len(ends) and ends[seen][0] <= low:
            end, seen = max(end, ends[seen][1]), seen + 1
        places[low] = at
        at += high - low if low < end else 0
    return [(begin, stop, places[address], places[address + size])
            for begin, stop, address, size in blocks]


def shares_live(blocks: list[tuple[int, int, int, int]], first: int, width: float,
                height: int) -> dict[tuple[int, int], float]:
    """For each lane of addresses and column of steps, the share that is live."""
    live: dict[tuple[int, int], float] = {}
    for begin, stop, low, high in blocks:
        for column in range(int((begin - first) / width), int((stop - first) / width) + 1):
            left = first + column * width
            share = max(0.0, min(stop, left + width) - max(begin, left)) / width
            for lane in range(low // height, (high - 1) // height + 1):
                part = min(high, (lane + 1) * height) - max(low, lane * height)
                live[lane, column] = live.get((lane, column), 0.0) + share * part / height
    return live


def places_figure(claim: Claim, table: Rows) -> Figure:
    """Addresses from bottom to top, steps from left to right: a cell is darker if more of it is
    live. As in tollens replay, the worst ratio is that while a quarter of the peak is live."""
    blocks = without_gaps([[int(cell) for cell in row] for row in table.rows])
    first, last = min(b[0] for b in blocks), max(b[1] for b in blocks)
    size = max(b[3] for b in blocks)
    width, height = max(1.0, (last - first) / PLACE_COLUMNS), max(1, -(-size // PLACE_LANES))
    boxes = [Box(first + column * width, first + (column + 1) * width, lane,
                 shade=min(1.0, round(share, 1)))
             for (lane, column), share in sorted(shares_live(blocks, first, width, height).items())
             if share >= 0.05]
    steps = [step for walk in claim.tables.walks
             if walk.attack == table.attack and table.name == f"{walk.name}_places"
             and (step := walk.worst_step(0.25)) is not None]
    title = f"{claim.id} {table.attack.replace('_', ' ')}: {table.name.replace('_', ' ')}"
    return Figure(file_name(claim.id, "places", table.attack, table.name), title,
                  f"Addresses over time. {title}: {counted(len(blocks), 'blocks')} in "
                  f"{size / (1 << 20):.0f} MiB of addresses"
                  + "".join(f"; held / requested is the worst at step {step}" for step in steps)
                  + ".", Axis("step", low=float(first), high=float(last)),
                  Axis("address, increasing upwards", ticks=[]), boxes=boxes,
                  rules=[Rule(float(step), "worst", upright=True, strong=True) for step in steps])


def timeline_figure(claim: Claim, table: Rows) -> Figure:
    """What ran when, one lane per stream."""
    lanes = list(dict.fromkeys(row[0] for row in table.rows))
    kinds = list(dict.fromkeys(row[1] for row in table.rows))
    first = min(int(row[2]) for row in table.rows)
    last = max(int(row[3]) for row in table.rows)
    scale, unit = time_scale(max(1, last - first))
    boxes = [Box((int(begin) - first) / scale, (int(end) - first) / scale, -lanes.index(lane),
                 kinds.index(what), f"{what}: {(int(end) - int(begin)) / scale:.3g} {unit}")
             for lane, what, begin, end in table.rows]
    key = [Line(what, [0.0], [math.nan], index, "dots") for index, what in enumerate(kinds[:6])]
    title = f"{claim.id} {table.attack.replace('_', ' ')}: {table.name.replace('_', ' ')}"
    return Figure(file_name(claim.id, "timeline", table.attack, table.name), title,
                  f"Timeline. {title}: {counted(len(boxes), 'operations')} on "
                  f"{counted(len(lanes), 'lanes')} in "
                  f"{(last - first) / scale:.4g} {unit}.", Axis(unit),
                  Axis("", ticks=[(float(-i), name[:14]) for i, name in enumerate(lanes)]), key,
                  boxes=boxes, left=100)


def curve(label: str, sizes: dict[float, int], index: int) -> Line:
    """The share of results with at most each error; results beyond the last size are not shown."""
    x, y, seen, total = [], [], 0, sum(sizes.values()) or 1
    for size, count in sorted(sizes.items()):
        seen += count
        if 0 < size < math.inf:
            x.append(size)
            y.append(100.0 * seen / total)
    return Line(label, x, y, index, "step")


def exact(table: Errors, sizes: dict[float, int]) -> str:
    """The share of exact results; a table of allowed errors does not count them."""
    if table.of_allowed:
        return ""
    return f"{sizes.get(0.0, 0) / (sum(sizes.values()) or 1):.2%} exact, "


def error_figures(claim: Claim, table: Errors) -> list[Figure]:
    """Figures of six groups of results each, with the threshold."""
    threshold, unit = claim.result["threshold"], claim.result["unit"]
    if table.of_allowed:
        threshold, unit = 1.0, "fraction of the allowed error"
    figures, groups = [], list(table.groups.items())
    title = f"{claim.id} {table.attack.replace('_', ' ')}: errors"
    for at in range(0, len(groups), 6):
        part = groups[at:at + 6]
        described = "; ".join(
            f"{label + ': ' if label else ''}{counted(sum(sizes.values()), 'results')}, "
            f"{exact(table, sizes)}the largest error "
            f"at most {max((s for s, n in sizes.items() if n > 0), default=0.0):.3g}"
            f"{' of the allowed' * table.of_allowed}"
            for label, sizes in part)
        figures.append(Figure(
            file_name(claim.id, "errors", table.attack, table.name, str(at)), title,
            f"Distribution of errors. {title}. {described}. Threshold {threshold:g}.",
            Axis(unit, log=True), Axis("% of results with at most this error", low=0.0, high=102.0),
            [curve(label, sizes, index) for index, (label, sizes) in enumerate(part)],
            [Rule(threshold, f"threshold {threshold:g}", upright=True, strong=True)]))
    return figures


def of_tables(claim: Claim) -> list[Figure]:
    tables = claim.tables
    return [*(map_figure(claim, table) for table in tables.maps),
            *(places_figure(claim, table) for table in tables.places),
            *(timeline_figure(claim, table) for table in tables.timelines),
            *(figure for table in tables.errors for figure in error_figures(claim, table))]
