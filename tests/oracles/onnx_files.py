"""Compares what onnxruntime computes with ONNX files of vecaz with what they should give.

    pip install onnx onnxruntime
    vecaz export-weights RUN --format onnx --out net.onnx
    python tests/oracles/onnx_files.py net.onnx

A file has a self-check in its metadata: observations with the policy and the values of the network in f32. Files for every kind of
layer and head, in every number format, beside JSON files with the reference's outputs of all heads, are written by

    VECAZ_WRITE_ONNX=DIR cargo test --release --lib onnx::tests::another_program

and DIR may be given instead of files. Differences are shares of 1 + the largest number of the output; those of f32 stay below 1e-5.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort

# Of f32 it is the order of sums, of the others the rounding of weights, and in f16 also of all that is computed.
BOUNDS = {"f32": 1e-5, "bf16": 2e-2, "f16": 5e-3}


def check(path):
    """The largest difference of each output of the file; exits where one is above the bound."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    beside = path.with_suffix(".json")
    right = json.loads(beside.read_text() if beside.exists() else metadata["selfcheck"])
    right = {name: np.array(rows, np.float32) for name, rows in right.items()}
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert given.name == "obs" and given.shape[0] == "batch", given
    names = [output.name for output in session.get_outputs()]
    if beside.exists():
        assert set(names) == set(right) - {"obs"}, names
    obs = right["obs"].reshape(-1, *given.shape[1:])
    found = dict(zip(names, session.run(names, {"obs": obs})))
    alone = dict(zip(names, session.run(names, {"obs": obs[:1]})))
    bound, worst = BOUNDS[metadata["precision"]], {}
    for name in names:
        if name in right:
            scale = 1 + np.abs(right[name]).max()
            worst[name] = max(np.abs(found[name] - right[name]).max(), np.abs(alone[name] - right[name][:1]).max()) / scale
    operators = sorted({node.op_type for node in model.graph.node})
    row = ", ".join(f"{name} {off:.1e}" for name, off in worst.items())
    print(f"{path.name}: {metadata['precision']}, {len(model.graph.node)} nodes; {row}")
    if not all(off < bound for off in worst.values()):
        sys.exit(f"{path}: differs by more than {bound}")
    return operators


def main(paths):
    files = [file for path in map(pathlib.Path, paths) for file in (sorted(path.glob("*.onnx")) if path.is_dir() else [path])]
    if not files:
        sys.exit(f"no ONNX files in {' '.join(paths)}")
    operators = {name for file in files for name in check(file)}
    print(f"{len(files)} files, operators {', '.join(sorted(operators))}")


if __name__ == "__main__":
    main(sys.argv[1:])
