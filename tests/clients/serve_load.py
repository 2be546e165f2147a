#!/usr/bin/env python3
"""Eight clients of `vecaz serve` at once, as the page speaks: 60 analyses a minute, all answered, and the server's memory stays flat.

    python3 tests/clients/serve_load.py target/release/vecaz RUN... --minutes 60

Every client reads the files of the page, makes a table, listens to its events, has two moves played and one position analysed, and removes the
table. Chromium does the same by tests/browser/long.sh, with fewer analyses in the time that it takes.
"""

import argparse
import json
import re
import subprocess
import threading
import time
import urllib.request

CLIENTS = 8
GAMES = [("hex", {"size": 7}), ("chess", {}), ("gomoku", {"size": 9}), ("connect_four", {}), ("othello", {}), ("go", {"size": 9}), ("clique", {}), ("hex", {"size": 11})]


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024


def client(number, address, until, period, results, errors):
    def call(method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address + path, data=data, method=method, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read()

    time.sleep(period * number / CLIENTS)
    game, options = GAMES[number % len(GAMES)]
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            for file in ["/", "/main.js", "/table.js", "/style.css"]:
                call("GET", file)
            table = json.loads(call("POST", "/api/tables", {"game": game, "options": options}))
            at = f"/api/tables/{table['id']}"
            events = urllib.request.urlopen(address + at + "/events", timeout=60)
            events.readline()
            for _ in range(2):
                state = json.loads(call("GET", at))
                call("POST", at + "/play", {"action": state["view"]["actions"][0]["action"]})
            analysed = time.monotonic()
            reply = urllib.request.urlopen(address + at + "/analysis?simulations=1500&interval=100", timeout=60)
            lines = [line.decode() for line in reply]
            assert any(line.startswith("event: done") for line in lines), lines[-3:]
            results.append(time.monotonic() - analysed)
            events.close()
            call("DELETE", at)
        except Exception as error:  # the report names it, and the exit code is 1
            errors.append(f"client {number}: {error!r}")
        time.sleep(max(0, period - (time.monotonic() - start)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--per-minute", type=int, default=62)
    args = parser.parse_args()
    server = subprocess.Popen([args.vecaz, "serve", *args.runs, "--threads", "1"], stdout=subprocess.PIPE, text=True)
    address = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline()).group()
    begin = time.monotonic()
    until, results, errors, samples = begin + 60 * args.minutes, [], [], []
    period = 60 * CLIENTS / args.per_minute
    threads = [threading.Thread(target=client, args=(number, address, until, period, results, errors)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(5)
        samples.append(resident_mib(server.pid))
    minutes = (time.monotonic() - begin) / 60
    third = max(1, len(samples) // 3)
    mean = lambda part: sum(part) / len(part)
    with open(f"/proc/{server.pid}/stat") as file:
        fields = file.read().split(") ")[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / 100
    server.terminate()
    server.wait(timeout=20)
    ordered = sorted(results)
    print(
        f"{len(results)} analyses in {minutes:.1f} minutes ({len(results) / minutes:.0f} a minute) from {CLIENTS} clients, {len(errors)} errors; "
        f"an analysis took {ordered[len(ordered) // 2]:.2f} s (median), {ordered[-1]:.2f} s (most); memory {mean(samples[:third]):.0f}, "
        f"{mean(samples[third:2 * third]):.0f} and {mean(samples[-third:]):.0f} MiB in the thirds of the time, {max(samples):.0f} at most; {cpu:.0f} s of CPU"
    )
    for error in errors[:5]:
        print(error)
    flat = mean(samples[-third:]) < 1.1 * mean(samples[third : 2 * third]) + 10
    raise SystemExit(0 if flat and not errors and len(results) >= 55 * args.minutes else 1)


if __name__ == "__main__":
    main()
