"""Starts vecaz and judges how it ended: the shape of an end, not the wording of its messages."""

import dataclasses
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


@dataclasses.dataclass
class Outcome:
    """The end of a process."""

    code: int  # negative: the number of the signal that killed it
    stdout: bytes
    stderr: bytes
    seconds: float
    interrupted: bool  # it was still at work after HANG seconds and got a SIGINT


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
    """Commands hear SIGINT even if this script was started in the background by a shell, which has it ignored."""
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


def faults(outcome, may_work_long=False, logs=False):
    """What is wrong with the end of a command, one phrase each.

    `may_work_long`: the input may ask for more than HANG seconds of honest work, if SIGINT ends it. `logs`: the log is on, so
    that stderr has more lines than the error's.
    """
    found = []
    text = outcome.stderr.decode("utf-8", "replace")
    if outcome.code < 0:
        kind = "hangs, deaf to SIGINT" if outcome.interrupted else f"killed by signal {-outcome.code}"
        found.append(kind)
    elif outcome.interrupted and (outcome.code != 128 + signal.SIGINT or not may_work_long):
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
            found.append("the line on stderr is no sentence")
    if len(text) > MAX_MESSAGE and not logs:
        found.append(f"{len(text)} characters on stderr")
    if any(controls_terminal(c) for c in text if c not in "\n\t") and not logs:
        found.append("control characters on stderr")
    return found
