"""Draw the charts as SVG with Matplotlib."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt

mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "msgid", "font.size": 9, "axes.spines.top": False})
OURS, THEIRS, FLOOR = "#c2410c", "#94a3b8", "#e2e8f0"


def bars(measured: dict[str, dict[str, float]], path: str) -> None:
    """Draw one panel per section: ns per ID on a logarithmic scale, the fastest on top."""
    heights = [len(best) for best in measured.values()]
    figure, axes = plt.subplots(
        len(measured), figsize=(9, 0.28 * sum(heights) + 0.75 * len(measured)), height_ratios=heights
    )
    for panel, (title, best) in zip(axes, measured.items(), strict=True):
        ordered = sorted(best.items(), key=lambda pair: -pair[1])
        colours = [OURS if "msgid" in name else FLOOR if name.startswith("floor") else THEIRS for name, _ in ordered]
        drawn = panel.barh([name.replace("`", "") for name, _ in ordered], [ns for _, ns in ordered], color=colours)
        panel.bar_label(drawn, [f" {ns:.1f}" for _, ns in ordered])
        panel.set(title=f"{title}, ns an id (logarithmic)", xscale="log")
        panel.spines["right"].set_visible(False)
        panel.margins(x=0.1)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def lines(by_size: dict[str, dict[int, float]], by_threads: dict[int, float], path: str) -> None:
    """Draw ns per ID by the size of a batch, and by the number of threads."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    for form, grown in by_size.items():
        left.plot(list(grown), list(grown.values()), marker="o", markersize=3, label=form)
    left.set(xscale="log", yscale="log", xlabel="ids a batch", ylabel="ns an id")
    left.legend(frameon=False)
    right.plot(list(by_threads), list(by_threads.values()), marker="o", markersize=3, color=OURS)
    right.set(xlabel="threads minting at once", ylabel="ns an id over all", ylim=(0, None), xticks=list(by_threads))
    for panel in (left, right):
        panel.spines["right"].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def rates(measured: dict[str, dict[str, float]], path: str) -> None:
    """Draw one panel per section: millions of rows per second, the fastest on top."""
    heights = [len(found) for found in measured.values()]
    figure, axes = plt.subplots(
        len(measured), figsize=(9, 0.28 * sum(heights) + 0.75 * len(measured)), height_ratios=heights
    )
    for panel, (title, found) in zip(axes, measured.items(), strict=True):
        ordered = sorted(found.items(), key=lambda pair: pair[1])
        colours = [
            FLOOR if name.startswith("floor") else THEIRS if "Python UDF" in name or name == "uuid()" else OURS
            for name, _ in ordered
        ]
        drawn = panel.barh([name for name, _ in ordered], [rate for _, rate in ordered], color=colours)
        panel.bar_label(drawn, [f" {rate:.2f}" for _, rate in ordered])
        panel.set(title=f"{title}, millions of rows a second")
        panel.spines["right"].set_visible(False)
        panel.margins(x=0.1)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def state_growth(by_ids: dict[str, dict[int, tuple[float, float]]], by_key: dict[int, float], path: str) -> None:
    """Draw rows per second and memory over the IDs in state, and messages per second over the messages per key."""
    figure, (rows, memory, keys) = plt.subplots(1, 3, figsize=(11, 3.2))
    for way, found in by_ids.items():
        colour = OURS if way == "deduplicate" else THEIRS
        rows.plot(list(found), [rate for rate, _ in found.values()], marker="o", markersize=3, color=colour, label=way)
        if way == "deduplicate":
            memory.plot(
                list(found), [megabytes for _, megabytes in found.values()], marker="o", markersize=3, color=colour
            )
    keys.plot(list(by_key), list(by_key.values()), marker="o", markersize=3, color=OURS)
    rows.set(xscale="log", xlabel="IDs in state", ylabel="rows per second", ylim=(0, None))
    rows.legend(frameon=False)
    memory.set(xscale="log", xlabel="IDs in state", ylabel="MB of the largest Python worker", ylim=(0, None))
    keys.set(xscale="log", xlabel="messages per key", ylabel="process, messages per second", ylim=(0, None))
    for panel in (rows, memory, keys):
        panel.spines["right"].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
