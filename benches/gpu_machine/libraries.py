"""Which file each of CUDA's libraries is on this machine, and what else is there: the first part of every verb, one JSON line.
Also where the runner takes libraries, profilers and Python packages from. Fails where the driver or NVRTC is not found."""

import ctypes
import glob
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys

# Libraries that belong together and are taken from one folder: NVRTC, cuBLAS, NCCL; the last two are candle's.
FAMILIES = (
    ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0"),
    ("libcublas.so.13", "libcublasLt.so.13"),
    ("libnccl.so.2",),
    ("libcurand.so.10",),
    ("libcudart.so.13",),
)
PACKAGES = ("torch", "jax", "jaxlib", "numpy", "chex", "pgx", "mctx", "dm-haiku")
TOOLS = ("nvidia-smi", "ncu", "compute-sanitizer")
GPU_FIELDS = "name,driver_version,memory.total,clocks.max.sm,compute_cap"


def library_folders():
    """Folders that may hold CUDA's libraries, in the order in which they are taken: Python packages, then an installed CUDA."""
    found = [folder for path in sys.path for folder in sorted(glob.glob(os.path.join(path, "nvidia/*/lib")))]
    return [*found, "/usr/local/cuda/lib64", "/usr/local/nvidia/lib64"]


def library_path(folder):
    """LD_LIBRARY_PATH beginning with `folder`, in which each family has links from one place alone, without version too: whoever
    looks for libcublas.so and whoever looks for libcublas.so.13 gets the same file."""
    os.makedirs(folder, exist_ok=True)
    for family in FAMILIES:
        homes = (home for home in library_folders() if all(os.path.exists(os.path.join(home, name)) for name in family))
        home = next(homes, None)
        for name in family if home else ():
            for link in {name, name.split(".so")[0] + ".so"}:
                os.symlink(os.path.join(home, name), os.path.join(folder, link))
    others = [path for path in library_folders() if os.path.isdir(path)]
    return os.pathsep.join([folder, *filter(None, [os.environ.get("LD_LIBRARY_PATH")]), *others])


def tool_folders():
    """Where NVIDIA's profilers often are though PATH does not name it."""
    folders = ["/usr/local/cuda/bin", "/usr/local/nvidia/bin", *sorted(glob.glob("/opt/nvidia/nsight-compute/*"), reverse=True)]
    return [folder for folder in folders if os.path.isdir(folder)]


def missing_modules(carried):
    """Folders in `carried`, each named as the Python module it holds, whose module this machine does not have by itself."""
    names = sorted(os.listdir(carried)) if os.path.isdir(carried) else []
    return [name for name in names if importlib.util.find_spec(name) is None]


def load(name):
    """Prints the file that the loader takes for `name`."""
    ctypes.CDLL(name)
    with open("/proc/self/maps") as maps:
        files = {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}
    begin = name.split(".so")[0] + ".so"
    print(next(file for file in sorted(files) if os.path.basename(file).startswith(begin)))


def file_of(name):
    """The file that the loader takes for `name` in a process that has loaded no other, and None or why there is none."""
    child = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, timeout=9, check=False)
    if child.returncode == 0:
        return child.stdout.strip(), None
    return None, (child.stderr.strip().splitlines() or ["it cannot be loaded"])[-1]


def nvrtc_version(name):
    major, minor = ctypes.c_int(), ctypes.c_int()
    ctypes.CDLL(name).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def package_version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def gpus():
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader"]
    listing = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=5, text=True, check=False)
    return listing.stdout.strip().splitlines()


def main():
    found, missing = {}, []
    for name in ["libcuda.so.1", *(name for family in FAMILIES for name in family)]:
        # The two names of a library are to be one file.
        for one in (name, name.split(".so")[0] + ".so"):
            found[one], why = file_of(one)
            if why and one == name:
                missing.append(f"{name}: {why}")
    row = {
        "gpus": gpus(),
        "libraries": found,
        "nvrtc": nvrtc_version("libnvrtc.so.13") if found["libnvrtc.so.13"] else None,
        "tools": {name: shutil.which(name) for name in TOOLS},
        "packages": {name: package_version(name) for name in PACKAGES},
        "python": f"{platform.python_version()}, {sys.executable}",
        "system": " ".join(platform.libc_ver()) + f", {platform.release()}, {os.cpu_count()} cores",
    }
    print(json.dumps(row), flush=True)
    for line in missing:
        print("missing:", line)
    needed = [line for line in missing if line.startswith(("libcuda.", "libnvrtc.so"))]
    sys.exit(f"error: {'; '.join(needed)}" if needed else 0)


if __name__ == "__main__":
    load(sys.argv[1]) if len(sys.argv) > 1 else main()
