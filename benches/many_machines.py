#!/usr/bin/env python3
"""Measures a learner and its workers as processes on one machine, with a new redis-server on a free port of the loopback interface.

    benches/many_machines.py weights                     seconds until 8 workers play with new weights
    benches/many_machines.py overhead                    samples per second of processor time: a worker, and a run without workers
    benches/many_machines.py link                        a worker with a link of 100 ms and 1 % loss, and one without
    benches/many_machines.py learning --seeds 1 2 3      a learner with two workers against one process, at equal samples
    benches/many_machines.py soak --minutes 60           memory of all processes while processes are killed, and an audit

Requires only Python's standard library, and Linux (/proc). The link is a proxy that delays every byte by 50 ms each way. With a probability of
1 % for each 1,448 bytes it holds the stream for 200 ms more, TCP's minimum time until a lost segment is sent again.
"""

import argparse
import asyncio
import collections
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Setting:
    """A server and the processes that use it; the exit kills all of them."""

    def __init__(self, args):
        self.args, self.port, self.processes = args, free_port(), []
        shutil.rmtree(args.out, ignore_errors=True)
        args.out.mkdir(parents=True)
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
        command += ["--dir", str(args.out)]
        self.server = self.start(command)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def start(self, command, log=subprocess.DEVNULL, environment=None):
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
        )
        self.processes.append(process)
        return process

    def url(self, run, port=None):
        return f"redis://127.0.0.1:{port or self.port}/{run}"

    def learner(self, run, *more):
        with open(self.args.out / f"{run}.log", "w") as log:
            line = [self.args.vecaz, "run", "--cluster", self.url(run), "--config", self.args.game, "--out", str(self.args.out / run)]
            process = self.start(line + ["--threads", "1", *more], log)
        while self.redis("EXISTS", f"{run}:state") != b":1\r\n":
            assert process.poll() is None, (self.args.out / f"{run}.log").read_text()
            time.sleep(0.02)
        return process

    def resumed(self, run):
        """A new learner of the run, from the last checkpoint of the one before."""
        with open(self.args.out / f"{run}.log", "a") as log:
            line = [self.args.vecaz, "run", "--cluster", self.url(run), "--resume", str(self.args.out / run)]
            return self.start(line + ["--minutes", "100000", "--threads", "1"], log)

    def worker(self, run, name, port=None, *more):
        """A worker; the caller reads its messages."""
        line = [self.args.vecaz, "work", self.url(run, port), "--threads", "1", "--name", name, *more]
        return self.start(line, subprocess.PIPE, {"VECAZ_LOG": "debug"})

    def redis(self, *words):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            return connection.recv(1 << 16)

    def status(self, run):
        """The statuses of all workers, by name."""
        text = self.redis("HVALS", f"{run}:workers").decode()
        return {status["name"]: status for status in map(json.loads, re.findall(r"\{.*\}", text))}


def records(folder):
    """The records of the finished epochs."""
    if not (folder / "metrics.jsonl").exists():
        return []
    with open(folder / "metrics.jsonl") as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


def processor_seconds(process):
    """Seconds of processor time by the thread's name."""
    seconds = collections.Counter()
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        name, fields = re.match(r"\d+ \((.*)\) (.*)", (task / "stat").read_text()).groups()
        fields = fields.split()
        seconds[name] += (int(fields[11]) + int(fields[12])) / TICKS
    return seconds


def resident_mib(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * PAGE / 2**20


def drain(process):
    threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()


def weights(args):
    """Seconds from the publication of a version in the run's state until each of 8 workers reports that version or a newer one."""
    workers = [f"w{number}" for number in range(8)]
    seen, lock = {name: [] for name in workers}, threading.Lock()

    def read(name, worker):
        for line in worker.stdout:
            if found := re.search(rb"weights of version (\d+), executed", line):
                with lock:
                    seen[name].append((int(found[1]), time.monotonic()))

    with Setting(args) as setting:
        options = ["eval.every=0", "selfplay.samples_per_epoch=2000", "train.replay_ratio=0.1", "train.min_samples=1000"]
        sets = [word for option in options for word in ("--set", option)]
        setting.learner("weights", "--play", "0", "--minutes", "1000", *sets)
        for name in workers:
            threading.Thread(target=read, args=(name, setting.worker("weights", name)), daemon=True).start()
        published, connection = {}, socket.create_connection(("127.0.0.1", setting.port))
        end = time.monotonic() + args.minutes * 60
        # Versions of the last ten seconds are not counted: this time is for workers to fetch the versions before.
        while (now := time.monotonic()) < end + 10:
            connection.sendall(b"HGET weights:state version\r\n")
            version = int(connection.recv(64).split(b"\r\n")[1])
            published.setdefault(version, now)
            time.sleep(0.002)
    begun = max((versions[0][1] for versions in seen.values() if versions), default=0.0)
    assert all(seen.values()), f"no version reported by {[name for name in workers if not seen[name]]}, expected one of each worker"
    # From the first version that was published after all workers had one.
    counted = [version for version, at in sorted(published.items()) if begun < at < end]
    print("| version | reported | skipped for a newer one | missing | median, s | last, s |\n|---|---|---|---|---|---|")
    slowest, missing = 0.0, 0
    for version in counted:
        first = [next(((found, at) for found, at in seen[name] if found >= version), None) for name in workers]
        after = [at - published[version] for _, at in filter(None, first)]
        reported = sum(found == version for found, _ in filter(None, first))
        print(
            f"| {version} | {reported} | {len(after) - reported} | {len(workers) - len(after)} "
            f"| {statistics.median(after or [math.inf]):.3f} | {max(after, default=math.inf):.3f} |"
        )
        slowest, missing = max(slowest, *after), missing + len(workers) - len(after)
    print(f"\n{len(counted)} versions, {len(workers)} workers; slowest of all: {slowest:.3f} s")
    assert counted and missing == 0, f"{missing} times a worker reported neither a version nor a newer one, expected 0"


def rate(process, samples, seconds):
    """Samples per second of processor time, between the first and the last change of `samples()`."""
    points, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        if (now := samples()) > (points[-1][0] if points else 0):
            points.append((now, sum(processor_seconds(process).values())))
        time.sleep(0.05)
    assert len(points) > 1, f"{len(points)} epochs, expected at least 2: raise --minutes"
    return (points[-1][0] - points[0][0]) / (points[-1][1] - points[0][1])


def overhead(args):
    """A worker, and a run without workers. Both play at the same time with the same network, which is never trained."""
    sets = ["eval.every=0", "replay.capacity=500000", "train.min_samples=500000", "run.keep_checkpoints=1"]
    options = ["--minutes", "1000", *(word for option in sets for word in ("--set", option))]
    with Setting(args) as setting:
        setting.learner("overhead", "--play", "0", *options)
        worker = setting.worker("overhead", "one")
        drain(worker)
        folder = args.out / "alone"
        line = [args.vecaz, "--quiet", "run", "--config", args.game, "--out", str(folder), "--threads", "1", *options]
        alone, rates = setting.start(line), {}
        taken = lambda: sum(epoch["samples"] for epoch in records(folder))
        sent = lambda: setting.status("overhead").get("one", {"samples": 0})["samples"]
        measured = [
            threading.Thread(target=lambda name, *of: rates.update({name: rate(*of, args.minutes * 60)}), args=of)
            for of in (("alone", alone, taken), ("worker", worker, sent))
        ]
        for thread in measured:
            thread.start()
        for thread in measured:
            thread.join()
        for what, process in (("worker", worker), ("alone", alone)):
            seconds = processor_seconds(process)
            all_seconds = sum(seconds.values())
            print(f"{what}: {rates[what]:.0f} samples per second of processor time")
            for name, part in seconds.most_common():
                print(f"    {name:<20} {part:>9.2f} s  {100 * part / all_seconds:>6.2f} %")
        print(f"worker / alone: {rates['worker'] / rates['alone']:.4f}")
        print(json.dumps(setting.status("overhead")))


async def proxy(port, target, delay, loss):
    """Forwards bytes in order after `delay` seconds."""

    async def pass_on(reader, writer):
        queue, loop = asyncio.Queue(), asyncio.get_running_loop()

        async def write():
            while (entry := await queue.get()) is not None:
                at, data = entry
                await asyncio.sleep(max(0.0, at - loop.time()))
                writer.write(data)
                await writer.drain()
            writer.close()

        writing, held = asyncio.create_task(write()), 0.0
        while data := await reader.read(1 << 16):
            lost = any(random.random() < loss for _ in range(0, len(data), 1448))
            held = max(held, loop.time() + delay + (0.2 if lost else 0.0))
            queue.put_nowait((held, data))
        queue.put_nowait(None)
        await writing

    async def connected(reader, writer):
        there = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer), return_exceptions=True)

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    await server.serve_forever()


def link(args):
    """Both workers run at the same time, so that both have the same share of the machine."""
    with Setting(args) as setting:
        far = free_port()
        threading.Thread(target=lambda: asyncio.run(proxy(far, setting.port, 0.05, 0.01)), daemon=True).start()
        options = ["--play", "0", "--minutes", "1000", "--set", f"cluster.order={args.order}"]
        setting.learner("link", *options, "--set", "train.replay_ratio=0.05", "--set", "eval.every=0")
        workers = {"near": setting.worker("link", "near"), "far": setting.worker("link", "far", far)}
        for worker in workers.values():
            drain(worker)
        time.sleep(20)
        first = setting.status("link")
        used = {name: sum(processor_seconds(worker).values()) for name, worker in workers.items()}
        time.sleep(args.minutes * 60)
        last = setting.status("link")
        rates = {}
        for name, worker in workers.items():
            samples = last[name]["samples"] - first[name]["samples"]
            seconds = sum(processor_seconds(worker).values()) - used[name]
            rates[name] = samples / (args.minutes * 60)
            print(f"{name:<5} {samples} samples, {rates[name]:.0f} a second, {seconds:.1f} s of processor time; {last[name]}")
        print(f"far / near: {rates['far'] / rates['near']:.3f}")


def learning(args):
    """The same number of epochs, so about the same number of samples, in three arms: a run alone; a learner that plays with two workers, each
    with as many games at once as the run alone (workers); and the games of the run alone divided among the three processes (split)."""
    print("| seed | arm | epochs | samples | of workers | staleness | updates | minutes | search error, last 3 | policy error, last 3 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for seed in args.seeds:
        for arm in args.arms:
            with Setting(args) as setting:
                common = ["--seed", str(seed), "--epochs", str(args.epochs), "--minutes", "1000"]
                common += [word for option in args.set for word in ("--set", option)]
                if arm == "alone":
                    out = str(args.out / arm)
                    line = [args.vecaz, "--quiet", "run", "--config", args.game, "--threads", "1", "--out", out, *common]
                    run = setting.start(line)
                else:
                    games = ["--games", "43"] if arm == "split" else []
                    run = setting.learner(arm, *common, *games)
                    for name in ("one", "two"):
                        drain(setting.worker(arm, name, None, *games))
                assert run.wait() == 0
                epochs = records(args.out / arm)
                total = lambda key: sum(epoch[key] for epoch in epochs)
                workers = [epoch["workers"] for epoch in epochs if epoch.get("workers")]
                of_workers = sum(epoch["samples"] for epoch in workers)
                staleness = statistics.mean([epoch["lag"] for epoch in workers] or [0.0])
                mean = lambda key: 100 * statistics.mean(epoch["strength"][key] for epoch in [e for e in epochs if e.get("strength")][-3:])
                print(
                    f"| {seed} | {arm} | {len(epochs)} | {total('samples'):,} | {of_workers:,} | {staleness:.1f} | {epochs[-1]['updates']:,} "
                    f"| {epochs[-1]['seconds'] / 60:.1f} | {mean('search_outcome_error'):.1f} % | {mean('policy_outcome_error'):.1f} % |",
                    flush=True,
                )


def soak(args):
    """Kills (SIGKILL) and restarts a worker every `--kill-every` seconds; with `--kill-learner` also the learner."""
    rng = random.Random(1)
    with Setting(args) as setting:
        begin = ["--minutes", "100000", "--set", "run.keep_checkpoints=2", "--set", "selfplay.samples_per_epoch=5000"]
        begin += [word for setting in args.set for word in ("--set", setting)]
        learner = setting.learner("soak", *begin)
        workers = [setting.worker("soak", f"w{number}") for number in range(3)]
        for worker in workers:
            drain(worker)
        killed, start, minute = collections.Counter(), time.monotonic(), 0
        print("| minute | epochs | learner, MiB | server, MiB | workers, MiB | killed |\n|---|---|---|---|---|---|", flush=True)
        while time.monotonic() < start + 60 * args.minutes:
            time.sleep(args.kill_every)
            assert learner.poll() is None and all(worker.poll() is None for worker in workers), "a process has ended by itself"
            now = int((time.monotonic() - start) / 60)
            if now > minute and (now <= 3 or now % 5 == 0):
                minute, sizes = now, [resident_mib(worker) for worker in workers]
                print(
                    f"| {minute} | {len(records(args.out / 'soak'))} | {resident_mib(learner):.0f} | {resident_mib(setting.server):.0f} "
                    f"| {min(sizes):.0f} to {max(sizes):.0f} | {killed.total()} |",
                    flush=True,
                )
            which = rng.randrange(len(workers) + args.kill_learner)
            if which == len(workers):
                learner.kill()
                learner.wait()
                learner = setting.resumed("soak")
                killed["learner"] += 1
                continue
            workers[which].kill()
            workers[which].wait()
            workers[which] = setting.worker("soak", f"w{which}")
            drain(workers[which])
            killed["worker"] += 1
        learner.send_signal(signal.SIGTERM)
        learner.wait()
        print(f"\nkilled: {dict(killed)}")
        audit(args.out / "soak", args.vecaz)


def audit(run, vecaz):
    """Checks the run's files: no game is stored twice, and all counts add up. If epochs are so small that all their games are stored,
    `audit.tsv` lists every game with its epoch. The games of a slot are numbered from 0, so a missing number is a lost game, unless its chunk
    was refused as stale."""
    epochs, stored = records(run), collections.defaultdict(list)
    for epoch in epochs:
        with open(run / "games" / f"epoch-{epoch['epoch']:06}.jsonl") as lines:
            for game in map(json.loads, lines):
                stored[game["slot"], game["game"]].append(epoch["epoch"])
    twice = sum(len(epochs) > 1 for epochs in stored.values())
    chunks = {key: sum(epoch["workers"][key] for epoch in epochs) for key in ("chunks", "stale", "repeated", "gaps", "refused")}
    verified = subprocess.run([vecaz, "verify", str(run)], capture_output=True, text=True)
    games = sum(epoch["games"] for epoch in epochs)
    print(f"\n{len(epochs)} epochs, {games:,} games; of {len(stored):,} stored games {twice} twice; chunks: {chunks}")
    print(f"vecaz verify: code {verified.returncode}; {verified.stdout.strip().splitlines()[-1]}")
    assert twice == 0 and verified.returncode == 0 and chunks["refused"] == 0
    if games == len(stored):
        lost, last = [], {}
        for slot, game in stored:
            last[slot] = max(game, last.get(slot, 0))
        with open(run / "audit.tsv", "w") as file:
            for slot, last_game in sorted(last.items()):
                for game in range(last_game + 1):
                    epoch = stored.get((slot, game))
                    if not epoch:
                        lost.append((slot, game))
                    print(slot, game, f"epoch {epoch[0]}" if epoch else "lost", sep="\t", file=file)
        processes = len({slot >> 20 for slot in last})
        print(f"every game is in audit.tsv: {games:,} games of {len(last):,} slots of {processes} processes, {len(lost)} left out")
        assert not lost or chunks["stale"], lost[:10]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["weights", "overhead", "link", "learning", "soak"])
    parser.add_argument("--game", default="connect_four", help="a game or a configuration's file")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=30, help="of learning")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--arms", nargs="+", choices=["alone", "workers", "split"], default=["alone", "workers", "split"], help="of learning")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of learning and soak")
    parser.add_argument("--order", choices=["free", "strict"], default="free", help="of link")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "many_machines")
    parser.add_argument("--kill-every", type=float, default=60.0, metavar="SECONDS", help="of soak")
    parser.add_argument("--kill-learner", action="store_true", help="of soak: kill the learner as well")
    parser.add_argument("--vecaz", default=str(ROOT / "target" / "release" / "vecaz"))
    args = parser.parse_args()
    # SIGTERM raises SystemExit, so that the exit of Setting kills all processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    globals()[args.what](args)


if __name__ == "__main__":
    main()
