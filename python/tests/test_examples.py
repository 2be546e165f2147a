"""The examples run, and what they claim holds."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_self_play_learns():
    example = runpy.run_path(str(EXAMPLES / "self_play.py"))
    network = example["learn"]()
    # The first move of the learned policy, without search, is the centre or a corner, and its search beats random play.
    logits, _ = network(np.zeros((1, 18), np.float32))
    assert logits.argmax() in (0, 2, 4, 6, 8)
    assert example["match"](network) > 0.9


def test_self_play_prints_its_results():
    done = subprocess.run([sys.executable, EXAMPLES / "self_play.py"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("against random play: ")


def test_the_notebook_runs(capsys):
    notebook = json.loads((EXAMPLES / "first_steps.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "outputs are not stored"
            exec("".join(cell["source"]), names)
    printed = capsys.readouterr().out
    assert "best column: 3" in printed and "proven: True" in printed
    assert names["run"].finished and names["columns"]["losses.value"][-1] < names["columns"]["losses.value"][0]
    assert "a draw, as between perfect players: True" in printed
