"""Starts vecaz and checks how it ends: exit code and form of the output, not the wording of messages."""

import dataclasses
import enum
import os
import signal
import subprocess
import time
import unicodedata

# Seconds after which a command counts as hanging.
HANG = 10.0
# Seconds that a command may take to end after SIGINT.
GRACE = 2.0
# Bytes that a message may have: a sentence, with paths and lists of legal actions.
MAX_MESSAGE = 4000
# Exit codes of a command that ends by itself: success, failure, invalid usage, a reader of stdout that is gone.
CODES = (0, 1, 2, 141)


class Allowed(enum.Flag):
    """What a command is allowed to do."""

    NOTHING = 0
    CHANGES = enum.auto()  # change files of the run
    LONG_WORK = enum.auto()  # work for more than HANG seconds, if SIGINT ends it
    LOG = enum.auto()  # write more lines to stderr than an error's


@dataclasses.dataclass
class Outcome:
    """The end of a process."""

    code: int  # negative: the number of the signal that killed it
    stdout: bytes
    stderr: bytes
    seconds: float
    interrupted: bool  # whether it ran for HANG seconds and then got a SIGINT


def start(command, stdin=b"", cwd=None, env=None, limit=None):
    """Runs `command` to its end, `limit` called in the new process first. After HANG seconds it is interrupted, GRACE seconds later killed."""
    began = time.monotonic()
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, **pipes, cwd=cwd, env=environment(env), preexec_fn=limit)
    interrupted = False
    try:
        out, err = process.communicate(stdin, timeout=HANG)
    except subprocess.TimeoutExpired:
        interrupted = True
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    return Outcome(process.returncode, out or b"", err or b"", time.monotonic() - began, interrupted)


def accept_interrupts():
    """Lets commands receive SIGINT although a shell that starts this script in the background sets it to be ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def environment(changes=None):
    """The environment of a command: without the log's filter, unless `changes` sets it."""
    env = {key: value for key, value in os.environ.items() if key != "VECAZ_LOG"}
    return env | (changes or {})


def message(outcome):
    """What a command wrote to stderr, in characters that can be printed."""
    text = outcome.stderr.decode("utf-8", "backslashreplace").strip()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def controls_terminal(character):
    """True for control characters and those that change the direction of writing."""
    turns = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    return unicodedata.category(character) == "Cc" or unicodedata.bidirectional(character) in turns


def faults(outcome, allowed=Allowed.NOTHING):
    """The defects of the end of a command that is `allowed` these exceptions, one phrase each."""
    found = []
    logs = bool(allowed & Allowed.LOG)
    text = outcome.stderr.decode("utf-8", "replace")
    if outcome.code < 0:
        kind = "hangs and ignores SIGINT" if outcome.interrupted else f"killed by signal {-outcome.code}"
        found.append(kind)
    elif outcome.interrupted and (outcome.code != 128 + signal.SIGINT or not allowed & Allowed.LONG_WORK):
        found.append(f"works for more than {HANG:.0f} s, exit code {outcome.code} after SIGINT")
    elif not outcome.interrupted and outcome.code not in CODES:
        found.append(f"exit code {outcome.code}")
    if "panicked" in text or "RUST_BACKTRACE" in text:
        found.append("panicked")
    if outcome.code in (1, 2) and not logs:
        lines = text.splitlines()
        if len(lines) != 1 or not text.endswith("\n"):
            found.append(f"{len(lines)} lines on stderr with exit code {outcome.code}")
        elif not lines[0].startswith("error: ") or len(lines[0].split()) < 4:
            found.append("the line on stderr is not a sentence")
    if len(text) > MAX_MESSAGE and not logs:
        found.append(f"{len(text)} characters on stderr")
    if any(controls_terminal(c) for c in text if c not in "\n\t") and not logs:
        found.append("control characters on stderr")
    return found
