"""PyTorch at vecaz's work: the forward and the training step of a pre-activation ResNet on a 6x7 board.

    pip install torch
    MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592 python benches/peers/torch_resnet.py [6x64]

(Without the two settings glibc gives large buffers back after every call, and torch is up to twice as slow.) Prints one JSON
line: the least seconds of a call of each kind, as the Rust benchmarks take them, and the rates.

    python benches/peers/torch_resnet.py 2x32,6x64,6x128 cuda 512,2048,8192 [f32,bf16,f16] [eager|compiled]

trains on the GPU: one JSON line for each network, number format and batch, as `benches/device_train.rs` prints them. `compiled` is
torch.compile with CUDA graphs for the network's forward and backward; each line's compilation takes tens of seconds."""
import json
import sys
import time

import torch
from torch import nn

THREADS, SECONDS = 2, 4.0
FORWARD_BATCH, TRAIN_BATCH = 128, 256


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(c), nn.BatchNorm2d(c)
        self.conv1, self.conv2 = (nn.Conv2d(c, c, 3, padding=1, bias=False) for _ in range(2))

    def forward(self, x):
        y = self.conv1(torch.relu(self.bn1(x)))
        return x + self.conv2(torch.relu(self.bn2(y)))


class Net(nn.Module):
    def __init__(self, blocks, c, planes=2, squares=42, actions=7):
        super().__init__()
        self.stem = nn.Conv2d(planes, c, 3, padding=1, bias=False)
        self.tower = nn.Sequential(*(Block(c) for _ in range(blocks)), nn.BatchNorm2d(c), nn.ReLU())
        self.policy = nn.Sequential(nn.Conv2d(c, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * squares, actions))
        self.value = nn.Sequential(
            nn.Conv2d(c, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
            nn.Linear(4 * squares, 64), nn.ReLU(), nn.Linear(64, 1), nn.Tanh())

    def forward(self, x):
        x = self.tower(self.stem(x))
        return self.policy(x), self.value(x).squeeze(1)


def least_seconds(work):
    for _ in range(3):
        work()
    least, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least


def forward_rate(blocks, channels, dtype, layout):
    net = Net(blocks, channels).eval().to(dtype).to(memory_format=layout)
    x = torch.rand(FORWARD_BATCH, 2, 6, 7).to(dtype).to(memory_format=layout)
    with torch.inference_mode():
        return FORWARD_BATCH / least_seconds(lambda: net(x))


def step_seconds(blocks, channels, dtype, layout):
    net = Net(blocks, channels).train().to(memory_format=layout)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    x = torch.rand(TRAIN_BATCH, 2, 6, 7).to(memory_format=layout)
    target, value = torch.full((TRAIN_BATCH, 7), 1 / 7), torch.zeros(TRAIN_BATCH)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            logits, v = net(x)
        loss = nn.functional.cross_entropy(logits.float(), target) + nn.functional.mse_loss(v.float(), value)
        loss.backward()
        optimizer.step()

    return least_seconds(step)


def cuda_updates(blocks, channels, batch, dtype, mode):
    """Updates per second as torch's users write them: channels last, the forward in autocast, a fused optimiser."""
    net = Net(blocks, channels).train().to("cuda", memory_format=torch.channels_last)
    run = MODES[mode](net)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
    x = torch.randint(0, 2, (batch, 2, 6, 7), device="cuda").float().to(memory_format=torch.channels_last)
    target = torch.full((batch, 7), 1 / 7, device="cuda")
    value = 2 * torch.rand(batch, device="cuda") - 1

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            logits, v = run(x)
        loss = nn.functional.cross_entropy(logits.float(), target) + nn.functional.mse_loss(v.float(), value)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + 1.0:
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        count += 10
    return count / (time.perf_counter() - start)


FORMATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
MODES = {
    "eager": lambda net: net,
    "compiled": lambda net: torch.compile(net, mode="reduce-overhead", dynamic=False),
}  # fmt: skip


def train_on_cuda(nets, batches, formats, mode):
    for net in nets:
        blocks, channels = map(int, net.split("x"))
        for name in formats:
            for batch in batches:
                rate = cuda_updates(blocks, channels, batch, FORMATS[name], mode)
                print(json.dumps({
                    "peer": f"torch {torch.__version__}", "mode": mode, "gpu": torch.cuda.get_device_name(), "net": net, "batch": batch,
                    "precision": name, "updates_per_second": rate, "samples_per_second": rate * batch,
                }), flush=True)


def main():
    if sys.argv[2:3] == ["cuda"]:
        formats, mode = (sys.argv[4:] + [",".join(FORMATS), "eager"][len(sys.argv) - 4 :])[:2]
        train_on_cuda(sys.argv[1].split(","), [int(batch) for batch in sys.argv[3].split(",")], formats.split(","), mode)
        return
    blocks, channels = map(int, (sys.argv[1] if len(sys.argv) > 1 else "6x64").split("x"))
    torch.set_num_threads(THREADS)
    plain, last = torch.contiguous_format, torch.channels_last
    print(json.dumps({
        "peer": f"torch {torch.__version__}", "net": f"{blocks}x{channels}", "threads": THREADS,
        "forward_f32_per_second": max(forward_rate(blocks, channels, torch.float32, m) for m in (plain, last)),
        "forward_bf16_per_second": max(forward_rate(blocks, channels, torch.bfloat16, m) for m in (plain, last)),
        "train_step_ms": 1e3 * min(step_seconds(blocks, channels, torch.float32, m) for m in (plain, last)),
        "train_step_bf16_ms": 1e3 * min(step_seconds(blocks, channels, torch.bfloat16, m) for m in (plain, last)),
    }))


main()
