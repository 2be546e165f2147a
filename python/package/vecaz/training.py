"""Runs: training as `vecaz run` does it, and its metrics."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Union

from . import _vecaz

Metrics = dict[str, Any]
"""The metrics of one epoch, as a line of `metrics.jsonl`."""


@dataclass(frozen=True)
class TrainingResult:
    """What a run left."""

    path: Path
    """The folder of the run: `vecaz.Engine(path)` plays with its network."""
    epochs: int
    """Finished epochs."""
    finished: bool
    """False if `on_epoch` stopped the run."""


def train(
    config: Union[str, "os.PathLike[str]", Mapping[str, Any], None] = None,
    on_epoch: Optional[Callable[[Metrics], Optional[bool]]] = None,
    *,
    settings: Optional[Mapping[str, Any]] = None,
    out: Union[str, "os.PathLike[str]", None] = None,
    resume: Union[str, "os.PathLike[str]", None] = None,
    verbose: bool = False,
) -> TrainingResult:
    """Trains a network by self-play, with the bytes that `vecaz run` gives for the same configuration, until `run.epochs` or `run.minutes`.

    Args:
        config: the path of a TOML file; the name of a built-in configuration or a game (`"quick"`, `"hex"`); or keys, such as
            `{"game.name": "hex", "game.size": 7, "run.epochs": 10}`, nested or dotted, over the built-in configuration of the game.
        on_epoch: called with the metrics of every epoch once its checkpoint is written. If it returns False the run ends. What it raises
            ends the run too, and is raised here.
        settings: further keys, over those of `config`.
        out: the folder of the run, new or empty; None for `runs/GAME-N` with the lowest free N.
        resume: the folder of a run to continue from its last checkpoint, with its configuration.
        verbose: True for the table and the progress of the program on the terminal.

    Ctrl-C raises `KeyboardInterrupt` within a second or so; the checkpoint of the last finished epoch stays, and `resume` continues there.

    Raises:
        ValueError: for a wrong configuration, with the key, what was found and what is expected.
        OSError: for files that cannot be read or written.
    """
    if resume is not None and out is not None:
        raise ValueError("out: found a folder, expected none with resume: the run goes on in its own")
    name, keys = (None, config) if isinstance(config, Mapping) else (config, None)
    path, epochs, finished = _vecaz.train(name, keys, settings, out, resume, verbose, on_epoch)
    return TrainingResult(Path(path), epochs, finished)


def load_metrics(run: Union[str, "os.PathLike[str]"]) -> dict[str, list[Any]]:
    """The metrics of a run as columns, an entry for each epoch: `pandas.DataFrame(vecaz.load_metrics(run))`, or `polars.DataFrame`.

    Nested metrics are dotted, such as `losses.policy`; where an epoch lacks a metric its entry is None.

    Raises:
        OSError: if there is no such run.
        ValueError: for a damaged line, with its number.
    """
    path = Path(run) / "metrics.jsonl"
    if not path.exists() and (Path(run) / "config.toml").exists():
        return {}
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row: dict[str, Any] = {}
            _flatten("", json.loads(line), row)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: found {error}, expected the metrics of an epoch") from None
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def _flatten(prefix: str, value: Any, out: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{prefix}.{key}" if prefix else key, inner, out)
    elif prefix:
        out[prefix] = value
    else:
        raise ValueError(f"a {type(value).__name__}")
