"""What a part leaves: the rows it measured, and why it failed."""

import csv
import json
import os
import re

# Lines that say why a program failed; the last one counts.
REASON = re.compile(r"^error\b|^[\w.]*Error\b|^device cuda|ERROR SUMMARY: [1-9]|==ERROR==|CUDA error")
# Metrics of a profile that the page shows, as ncu names them.
METRICS = (
    "Duration", "SM Frequency", "Compute (SM) Throughput", "Memory Throughput", "DRAM Throughput", "L2 Hit Rate",
    "Registers Per Thread", "Achieved Occupancy", "Executed Ipc Active", "No Eligible",
)  # fmt: skip


def reason_in(lines):
    """Why a program failed, in the words of its log."""
    found = [line for line in lines if REASON.search(line)]
    return (found or lines or ["it printed nothing"])[-1].strip()


def rows_of(work, name, log):
    """What a part measured: the rows of its NAME.json, else those of its profile, run or log."""
    path = os.path.join(work, name)
    for read, file in ((json.loads, path + ".json"), (profile, path + ".csv"), (json_lines, os.path.join(path, "metrics.jsonl"))):
        if os.path.exists(file):
            with open(file, errors="replace") as opened:
                try:
                    return read(opened.read())
                except (ValueError, KeyError, csv.Error):
                    return []  # half a file of a killed program, which is in the archive
    return json_lines("\n".join(log))


def json_lines(text):
    rows = []
    for line in text.splitlines():
        if line.startswith("{") and line.endswith("}"):
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return rows


def profile(text):
    """The metrics of each kernel in a profile by ncu, as `value unit`."""
    table = text[text.find('"ID"') :] if '"ID"' in text else ""
    kernels = {}
    for row in csv.DictReader(table.splitlines()):
        if row.get("Metric Name") in METRICS:
            kernel = kernels.setdefault(row["ID"], {"kernel": row["Kernel Name"]})
            kernel.setdefault(row["Metric Name"], f"{row['Metric Value']} {row['Metric Unit']}".strip())
    return list(kernels.values())


def heaviest_kernel(parts, name, net, rank):
    """The kernel that took the `rank`-th most time in the rows of part `name` for network `net`; None where there is no such row."""
    rows = [row for part in parts if part["name"] == name for row in part["rows"] if row.get("net") == net]
    kernels = rows[-1].get("kernels", []) if rows else []
    kernels = sorted(kernels, key=lambda time: -time["seconds"])
    return kernels[rank]["kernel"] if rank < len(kernels) else None
