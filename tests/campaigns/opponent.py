#!/usr/bin/env python3
"""An opponent for `exec:` that follows the protocol until it misbehaves at a random reply.

    opponent.py SEED
"""

import json
import os
import random
import subprocess
import sys
import time

from mutations import bytes_of, value_of

# Seconds above every `--reply-timeout` of the campaign.
LONG = 30


def right_reply(rng, request):
    at = rng.randrange(len(request["legal"]))
    return {"action": request["legal"][at] if rng.random() < 0.5 else request["legal_names"][at]}


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def flood(_):
    while True:
        write(b"9" * 4096 + b"\n")


def endless_line(_):
    while True:
        write(b"[" * 65536)


def fail(rng):
    sys.stderr.buffer.write(rng.choice((b"", b"out of memory\n", b"a\nb\nlast words", b"\x1b[31mred\x07\n", b"\xff\xfe\n", b"x" * 100_000, b"\r\n\r\n")))
    sys.stderr.flush()
    os._exit(rng.choice((0, 1, 3, 255)))


def leave_a_child(rng):
    subprocess.Popen(["sleep", f"{LONG}.{sys.argv[1]}"])  # the campaign finds the process by the seed
    fail(rng)


def close_stdout(_):
    os.close(1)
    time.sleep(LONG)


def flood_stderr(_):
    while True:
        sys.stderr.buffer.write(b"warning\n" * 1000)


def main():
    rng = random.Random(int(sys.argv[1]))
    at = rng.choice((0, 0, 1, 2, 5))
    if rng.random() < 0.1:
        write(rng.choice((b"hello\n", b"{}\n", b'{"action":0}\n' * 3, b"\n", b"\0")))
    acts = (flood, endless_line, fail, fail, leave_a_child, close_stdout, flood_stderr, lambda _: time.sleep(LONG), lambda _: os.abort())
    for number, line in enumerate(sys.stdin):
        reply = right_reply(rng, json.loads(line))
        text = json.dumps(reply).encode() + b"\n"
        if number >= at:
            kind = rng.random()
            if kind < 0.4:
                text = json.dumps(value_of(rng, reply)).encode() + b"\n"
            elif kind < 0.7:
                text = bytes_of(rng, text)
            elif kind < 0.75:
                text *= 2
            else:
                rng.choice(acts)(rng)
        write(text)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(0)
