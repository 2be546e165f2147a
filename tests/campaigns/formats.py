"""Reads and writes the formats of vecaz's files, with other contents and valid checksums.

docs/formats.md describes the folder, src/run/checkpoint.rs `progress.bin`, src/weights/mod.rs the networks.
"""

import json
import os
import struct
import zlib

MANIFEST = "manifest.jsonl"
PROGRESS = "progress.bin"


def _crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    """CRC-32C (Castagnoli), the checksum of the manifest."""
    table, value = _TABLE, 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


# --- manifest.jsonl ---

def manifest_bytes(lines):
    """The manifest with these lines before the last one, and their checksum."""
    body = "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")
    return body + b'{"crc32c":"%08x"}\n' % crc32c(body)


def manifest_lines(run):
    """The lines of the manifest before the last one."""
    with open(os.path.join(run, MANIFEST)) as file:
        return file.read().splitlines()[:-1]


def seal(run, names):
    """Writes valid checksums for the files `names` of `run`: in the checkpoint's `progress.bin`, then in the manifest."""
    changed = set(names)
    for name in names:
        folder, file = os.path.split(name)
        if folder.startswith("checkpoints/") and file != PROGRESS and seal_progress(os.path.join(run, folder)):
            changed.add(os.path.join(folder, PROGRESS))
    lines = []
    for line in manifest_lines(run):
        entry = json.loads(line)
        path = os.path.join(run, entry.get("path", ""))
        if entry.get("path") in changed and os.path.isfile(path):
            with open(path, "rb") as file:
                data = file.read()
            entry |= {"size": len(data), "crc32c": f"{crc32c(data):08x}"}
        lines.append(json.dumps(entry, separators=(",", ":")))
    with open(os.path.join(run, MANIFEST), "wb") as file:
        file.write(manifest_bytes(lines))


def seal_progress(folder):
    """Writes the digests of the checkpoint's other files into its `progress.bin`; False if a file cannot be read."""
    path = os.path.join(folder, PROGRESS)
    try:
        with open(path, "rb") as file:
            progress = parse_progress(file.read())
        for listed in progress["files"]:
            with open(os.path.join(folder, listed["name"]), "rb") as file:
                data = file.read()
            listed |= {"size": len(data), "crc32c": crc32c(data)}
    except (OSError, ValueError):
        return False
    with open(path, "wb") as file:
        file.write(progress_bytes(progress))
    return True


# --- progress.bin: postcard, with the CRC-32 of all bytes before it at the end ---

def sequence(item):
    return ("sequence", item)


def record(**fields):
    return ("record", tuple(fields.items()))


SAMPLE = record(state="bytes", player="u8", actions=sequence("varint"), policy=sequence("f32"), values=sequence("f32"))
SLOT = record(
    slot="varint", game="varint", state="bytes", history=sequence("varint"), actions=sequence("varint"), opening="varint",
    samples=sequence(SAMPLE), proven=sequence("varint"),
)
BEST = ("option", record(epoch="varint", rank="f64"))
COUNTERS = record(epoch="varint", seconds="f64", best=BEST)
FILE = record(name="text", size="varint", crc32c="varint")
LAYOUT = record(
    format="varint", game="text", counters=COUNTERS, slots=sequence(SLOT), files=sequence(FILE), received="bytes",
)
SIZES = {"f32": ("<f", 4), "f64": ("<d", 8), "u8": ("<B", 1)}


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number is cut short")
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def _decode(layout, data, at):
    """(value, position after it)."""
    if layout == "varint":
        return _read_varint(data, at)
    if layout in SIZES:
        form, size = SIZES[layout]
        return struct.unpack_from(form, data, at)[0], at + size
    if layout in ("bytes", "text"):
        size, at = _read_varint(data, at)
        value = data[at:at + size]
        return (value.decode("utf-8") if layout == "text" else value), at + size
    kind, *rest = layout
    if kind == "record":
        value = {}
        for name, field in rest[0]:
            value[name], at = _decode(field, data, at)
        return value, at
    if kind == "option":
        present, at = data[at], at + 1
        return _decode(rest[0], data, at) if present else (None, at)
    count, at = _read_varint(data, at)
    values = []
    for _ in range(count):
        value, at = _decode(rest[-1], data, at)
        values.append(value)
    return values, at


def _encode(layout, value):
    if layout == "varint":
        return _varint(value)
    if layout == "u8":
        return bytes([value & 255])
    if layout in SIZES:
        return struct.pack(SIZES[layout][0], _fitting(layout, value))
    if layout in ("bytes", "text"):
        data = value.encode("utf-8", "surrogateescape") if layout == "text" else value
        return _varint(len(data)) + data
    kind, *rest = layout
    if kind == "record":
        return b"".join(_encode(field, value[name]) for name, field in rest[0])
    if kind == "option":
        return b"\0" if value is None else b"\1" + _encode(rest[0], value)
    return _varint(len(value)) + b"".join(_encode(rest[-1], item) for item in value)


def _fitting(layout, value):
    """The float in its format: infinite beyond the largest finite value."""
    if layout == "f32" and abs(value) > 3.4e38:
        return float("inf") if value > 0 else float("-inf")
    return value


def parse_progress(data):
    """The content of a `progress.bin`. ValueError if it is damaged."""
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise ValueError("its checksum differs")
    value, end = _decode(LAYOUT, data[:-4], 0)
    if end != len(data) - 4:
        raise ValueError(f"{len(data) - 4 - end} bytes after its end")
    return value


def progress_bytes(value):
    """A `progress.bin` with a right checksum."""
    return with_crc32(_encode(LAYOUT, value))


def with_crc32(body):
    return body + zlib.crc32(body).to_bytes(4, "little")


# --- safetensors ---

def parse_tensors(data):
    """(header as JSON, bytes of all tensors)."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8:8 + size]), data[8 + size:]


def tensors_bytes(header, data):
    """A safetensors file; the header is padded with blanks to a multiple of 8 bytes."""
    text = json.dumps(header, separators=(",", ":")).encode("utf-8", "surrogateescape")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


# --- config.toml ---

def toml_text(tables):
    """A configuration of tables of plain values as TOML."""
    parts = []
    for section, table in tables.items():
        parts.append(f"[{section}]")
        parts += [f"{key} = {toml_value(value)}" for key, value in table.items()]
    return "\n".join(parts) + "\n"


def toml_value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps("" if value is None else value)
