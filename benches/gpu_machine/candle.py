"""Builds benches/device_candle.rs with candle's own CUDA kernels where there is neither CUDA nor a GPU: python3 candle.py CAPABILITY

candle's build needs nvcc, and links to CUDA's libraries. nvcc, cudart, cuRAND and NVRTC are wheels; of the driver and cuBLAS the linker
only needs the names, so libraries with the names that cudarc declares stand in for them. Prints the program's path."""

import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHEELS = (
    "nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85", "nvidia-curand==10.4.0.35", "nvidia-cuda-nvrtc==13.0.88",
)  # fmt: skip
# Libraries of the wheels, and those with names alone: the folder of each in cudarc's sources.
LINKED = ("libcudart.so.13", "libcurand.so.10", "libnvrtc.so.13")
NAMES = {"libcuda.so.1": "driver", "libcublas.so.13": "cublas", "libcublasLt.so.13": "cublaslt"}
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
NAME = "device_candle"


def output(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def cudarc_sources():
    """The folder of cudarc's sources, which cargo has fetched."""
    packages = json.loads(output("cargo", "metadata", "--format-version=1", "--locked"))["packages"]
    manifests = [package["manifest_path"] for package in packages if package["name"] == "cudarc"]
    return os.path.join(os.path.dirname(manifests[0]), "src")


def make_names(path, library, source):
    """A library `library` at `path` whose functions are those declared in `source`. Each says that there is no device."""
    with open(source) as file:
        names = sorted(set(re.findall(r"\bfn (cu\w+)\(", file.read())))
    text = "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in names)
    output("cc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", "-x", "c", "-fno-builtin", "-o", path, "-", input=text)


def make_libraries(folder):
    """Puts all that the program is linked to into `folder`, each file by both of its names."""
    cuda, sources = output("kernels/wheels.sh", *WHEELS).strip(), cudarc_sources()
    for library in (*LINKED, *NAMES):
        path = os.path.join(folder, library)
        if library in LINKED:
            os.symlink(os.path.join(cuda, "lib", library), path)
        else:
            make_names(path, library, os.path.join(sources, NAMES[library], "sys/mod.rs"))
        os.symlink(library, os.path.join(folder, library.split(".so")[0] + ".so"))
    return cuda


def build(capability, libraries):
    """The program's path. Its own folder keeps other programs from being linked to CUDA as well."""
    cuda = make_libraries(libraries)
    environment = {
        **os.environ,
        "CUDA_HOME": cuda,
        "CUDA_COMPUTE_CAP": capability,
        "PATH": os.pathsep.join([os.path.join(cuda, "bin"), os.environ.get("PATH", os.defpath)]),
        "LIBRARY_PATH": os.pathsep.join([libraries, *filter(None, [os.environ.get("LIBRARY_PATH")])]),
    }
    cargo = ("cargo", "bench", "--no-run", "--locked", "--bench", NAME, "--features", "candle-cuda", "--target-dir", "target/candle")
    messages = output(*cargo, "--message-format=json", env=environment)
    built = (json.loads(line) for line in messages.splitlines() if line.startswith("{"))
    executables = {message["target"]["name"]: message["executable"] for message in built if message.get("executable")}
    return executables[NAME]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as libraries:
        print(build(sys.argv[1], libraries))
