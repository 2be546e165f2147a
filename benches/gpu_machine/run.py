"""Runs one verb of parts.py and writes page.md, results.json and logs.tar.gz into OUT after every part.

python3 run.py first|rates|deep OUT [--seconds N] [--began UNIX_SECONDS] [--past-gate]
python3 run.py parts OUT PART... [--seconds N] [--began UNIX_SECONDS] [--past-gate]

`parts` runs those named alone, in that order; a name may have wildcards. `--seconds` is how long all may take, at most CALL_SECONDS.
`--began` is when the call began, unpacking included: whatever unpacking took, all ends those seconds after it. `--past-gate` goes on
where a gate's parts have all failed, to try out the parts after it."""

import argparse
import datetime
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import libraries
import logs
import page
import parts

BIN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Seconds between asking a process to end and killing it.
GRACE = 2
# Files larger than this stay out of the archive: checkpoints. With it, the archive stays below the 16 MiB that come back.
ARCHIVED_BYTES, ARCHIVE_BYTES = 1 << 20, 12 << 20
KERNELS = "VECAZ_KERNELS"


def environments(work):
    """Environment of our programs, and of the references in Python."""
    peer = {**os.environ, "JAX_PLATFORMS": "cuda", "JAX_TRACEBACK_FILTERING": "off", "PYTHONUNBUFFERED": "1"}
    carried = os.path.join(BIN, "python")
    missing = [os.path.join(carried, name) for name in libraries.missing_modules(carried)]
    peer["PYTHONPATH"] = os.pathsep.join([*missing, *filter(None, [os.environ.get("PYTHONPATH")])])
    ours = {**peer, "VECAZ_CACHE": os.path.join(BIN, "cache"), "VECAZ_REQUIRE_CUDA": "1", "VECAZ_LOG": "vecaz=info"}
    ours["LD_LIBRARY_PATH"] = libraries.library_path(os.path.join(work, "lib"))
    ours["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *libraries.tool_folders()])
    if ours.get(KERNELS):
        ours[KERNELS] = os.path.abspath(ours[KERNELS])
    return {"ours": ours, "peer": peer}


class Process:
    """A part that runs. Its log is NAME.log in the folder `work`."""

    def __init__(self, part, words, seconds, work, environment):
        self.part, self.words, self.seconds = part, words, seconds
        self.began, self.terminated, self.exit, self.took = time.monotonic(), False, None, 0.0
        self.log = open(os.path.join(work, part.name + ".log"), "wb")
        try:
            self.child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, cwd=work,
                env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self.log.write(f"error: {words[0]} cannot be started: {error.strerror}\n".encode())
            self.child, self.exit = None, 127
            self.log.close()

    def poll(self):
        """True once it has ended."""
        if self.exit is not None:
            return True
        self.took = time.monotonic() - self.began
        self.exit = self.child.poll()
        if self.exit is None and self.took >= self.seconds - GRACE and not self.terminated:
            self.terminated = True
            self.signal(signal.SIGTERM)
        if self.exit is None and self.took >= self.seconds:
            self.exit = -signal.SIGKILL
        if self.exit is None:
            return False
        self.signal(signal.SIGKILL)  # what it has started and left running
        self.child.wait()
        self.log.close()
        return True

    def signal(self, number):
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass


class Verb:
    def __init__(self, name, out, chosen, ends):
        self.name, self.out, self.ends = name, out, ends
        self.work = tempfile.mkdtemp(prefix="vecaz-")
        self.tests = read_lines(os.path.join(BIN, "tests"))
        self.verb = parts.chosen(chosen, self.tests) if name == "parts" else parts.VERBS[name](self.tests)
        self.environments = environments(self.work)
        self.results = {
            "verb": name,
            "title": self.verb.title,
            "date": datetime.date.today().isoformat(),
            "commit": " ".join(read_lines(os.path.join(BIN, "commit"))) or "unknown",
            "kernels_from": self.environments["ours"].get(KERNELS) or None,
            "parts": [],
        }

    def left(self):
        """Seconds until results must be written."""
        return self.ends - parts.FINISH_SECONDS - time.time()

    def run(self, past_gate):
        stopped = None
        self.write()
        for stage in self.verb.stages:
            if stopped:
                for part in stage.parts:
                    self.note(part, part.command, stopped, 0.0, None)
                self.write()
                continue
            self.run_stage(stage)
            last = self.results["parts"][-len(stage.parts) :]
            if stage.kind == "gate" and not past_gate and all(part["exit"] != 0 for part in last):
                stopped = "not run, since both parity tests failed"

    def run_stage(self, stage):
        stored = self.programs()
        seconds = {part.name: min(part.seconds, self.left()) for part in stage.parts}
        running = []
        for part in stage.parts:
            words = [self.fill(word) for word in part.command]
            print(f"== {part.name}, at most {seconds[part.name]:.0f} s: {' '.join(words)}", flush=True)
            if seconds[part.name] <= GRACE:
                self.note(part, words, "not run, since no time was left", 0.0, None)
            else:
                running.append(Process(part, words, seconds[part.name], self.work, self.environments[part.group]))
        while running:
            for process in [process for process in running if process.poll()]:
                running.remove(process)
                late = process.terminated or process.exit == -signal.SIGKILL
                reason = f"out of time after {process.seconds:.0f} s" if late else None
                result = self.note(process.part, process.words, reason, process.took, process.exit)
                result["programs_compiled"] = len(self.programs() - stored)
                print(f"   {process.part.name}: {page.verdict(result)}, {process.took:.1f} s", flush=True)
                self.write()
            time.sleep(0.05)

    def note(self, part, words, reason, took, code):
        """Keeps how a part went. `reason` says why it did not end by itself, `code` is its exit code, None if it never ran."""
        log = read_lines(os.path.join(self.work, part.name + ".log")) if code is not None else []
        result = {
            "name": part.name,
            "group": part.group,
            "limit_s": part.seconds,
            "seconds": round(took, 1),
            "exit": code,
            "reason": reason or (logs.reason_in(log) if code else None),
            "command": " ".join(os.path.basename(word) for word in words),
            "programs_compiled": 0,
            "last_lines": log[-page.TAIL :],
            "rows": logs.rows_of(self.work, part.name, log) if code is not None else [],
        }
        self.results["parts"].append(result)
        return result

    def fill(self, word):
        """A word of a command with its placeholders filled."""
        if word.startswith("{kernel:"):
            _, part, net, rank, other = word.strip("{}").split(":")
            return logs.heaviest_kernel(self.results["parts"], part, net, int(rank)) or other
        return word.replace("{bin}", BIN).replace("{work}", self.work)

    def programs(self):
        """Compiled programs in the store."""
        folder = os.path.join(BIN, "cache", "programs")
        return set(os.listdir(folder)) if os.path.isdir(folder) else set()

    def write(self):
        """Results and logs so far, each file whole or as it was."""
        replace(os.path.join(self.out, "results.json"), json.dumps(self.results, indent=1).encode())
        replace(os.path.join(self.out, "page.md"), page.page(self.results).encode())
        replace(os.path.join(self.out, "logs.tar.gz"), archive_of(self.work))


def archive_of(folder):
    """A compressed archive of the files in `folder`, but for large ones. Parts may still be writing there."""
    packed, size = io.BytesIO(), 0
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=5) as tar:
        for parent, _, names in sorted(os.walk(folder)):
            for path in sorted(os.path.join(parent, name) for name in names):
                try:
                    if os.path.islink(path) or os.path.getsize(path) > ARCHIVED_BYTES:
                        continue
                    with open(path, "rb") as file:
                        content = file.read(ARCHIVED_BYTES)
                except OSError:
                    continue  # it has gone meanwhile
                size += len(content)
                if size <= ARCHIVE_BYTES:
                    entry = tarfile.TarInfo(os.path.relpath(path, folder))
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path, errors="replace") as file:
        return [line.rstrip() for line in file if line.strip()]


def replace(path, content):
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=[*parts.VERBS, "parts"])
    parser.add_argument("out")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=parts.CALL_SECONDS)
    parser.add_argument("--began", type=float, default=time.time())
    parser.add_argument("--past-gate", action="store_true")
    arguments = parser.parse_args()
    if bool(arguments.parts) != (arguments.verb == "parts"):
        parser.error("parts are named after `parts OUT`, and there alone")
    if not 0 < arguments.seconds <= parts.CALL_SECONDS:
        parser.error(f"--seconds is at most {parts.CALL_SECONDS}")
    os.makedirs(arguments.out, exist_ok=True)
    try:
        verb = Verb(arguments.verb, os.path.abspath(arguments.out), arguments.parts, arguments.began + arguments.seconds)
    except ValueError as error:
        parser.error(str(error))
    try:
        verb.run(arguments.past_gate)
    finally:
        shutil.rmtree(verb.work, ignore_errors=True)
    print(page.page(verb.results))
    # A reference that fails is on the page, and no failure of vecaz.
    sys.exit(any(part["exit"] != 0 for part in verb.results["parts"] if part["group"] == "ours"))


if __name__ == "__main__":
    main()
