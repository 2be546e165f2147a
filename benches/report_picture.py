#!/usr/bin/env python3
"""The README's picture: four charts of a run's report in one file.

    benches/report_picture.py runs/connect_four-1/report.html docs/report.svg
"""

import re
import sys
from pathlib import Path

TITLES = ["Errors on solved positions", "Losses", "Positions per second", "Mean game length"]


def main(report: Path, out: Path) -> None:
    charts = re.findall(r"<svg.*?</svg>", report.read_text(), re.S)
    chosen = []
    for title in TITLES:
        found = [chart for chart in charts if title in chart]
        if not found:
            sys.exit(f"{report} has no chart with {title!r} in it")
        chosen.append(found[0])
    width, height = (int(n) for n in re.search(r'viewBox="0 0 (\d+) (\d+)"', chosen[0]).groups())
    offsets = [(i % 2 * width, i // 2 * height) for i in range(len(chosen))]
    nested = [chart.replace("<svg", f'<svg x="{x}" y="{y}"', 1) for chart, (x, y) in zip(chosen, offsets)]
    size = f'width="{2 * width}" height="{2 * height}" viewBox="0 0 {2 * width} {2 * height}"'
    white = '<rect width="100%" height="100%" fill="#fff"/>'
    out.write_text(f'<svg {size} xmlns="http://www.w3.org/2000/svg">{white}\n' + "\n".join(nested) + "\n</svg>\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
