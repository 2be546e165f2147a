"""The examples run, and what they claim holds."""

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
