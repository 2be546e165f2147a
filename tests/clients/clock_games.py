#!/usr/bin/env python3
"""Games by UCI at 1 s + 0.01 s a move, the engine on both sides, clocks kept here: how many are lost on time.

    python3 tests/clients/clock_games.py target/release/vecaz runs/chess --games 1000 --parallel 2

A game ends by `bestmove (none)` or after `--plies` plies. Exit code 1 if a clock ran out.
"""

import argparse
import subprocess
import sys
import threading
import time


def game(command, plies):
    """The least time that a clock showed after a move, and the plies."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(line):
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def wait(start):
        for line in process.stdout:
            if line.startswith(start):
                return line.split()
        raise SystemExit("the engine ended")

    send("isready")
    wait("readyok")
    moves, left, least = [], [1.0, 1.0], 1.0
    for ply in range(plies):
        send("position startpos moves " + " ".join(moves))
        start = time.monotonic()
        white, black = (max(0, int(1000 * clock)) for clock in left)
        send(f"go wtime {white} btime {black} winc 10 binc 10")
        move = wait("bestmove")[1]
        left[ply % 2] -= time.monotonic() - start
        least = min(least, left[ply % 2])
        left[ply % 2] += 0.01
        if move == "(none)" or least < 0:
            break
        moves.append(move)
    send("quit")
    process.wait(timeout=20)
    return least, len(moves)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--plies", type=int, default=120)
    args = parser.parse_args()
    command = [args.vecaz, "engine", args.run, "--threads", "1"]
    numbers, results, lock = iter(range(args.games)), [], threading.Lock()

    def work():
        while True:
            with lock:
                if next(numbers, None) is None:
                    return
            result = game(command, args.plies)
            with lock:
                results.append(result)
                if len(results) % 50 == 0:
                    print(f"{len(results)} games, {sum(least < 0 for least, _ in results)} lost on time", flush=True)

    threads = [threading.Thread(target=work) for _ in range(args.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = sum(least < 0 for least, _ in results)
    least = min(least for least, _ in results)
    plies = sum(plies for _, plies in results)
    print(f"{len(results)} games of {plies / len(results):.0f} plies: {lost} lost on time, least time on a clock {1000 * least:.0f} ms")
    sys.exit(1 if lost or len(results) < args.games else 0)


if __name__ == "__main__":
    main()
