"""Mutations of bytes, texts and values, drawn from a random.Random."""

import json

INTEGERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1.001, 2.0, 1e-45, 1e-310, 1e30, 3e38, 1e307, -1e307, float("nan"), float("inf"), float("-inf"))
TEXTS = ("", " ", "\0", "x", "0", "-1", "1e999", "nan", "../x", "a" * 300, "\u00e9\u4e2d\U0001f600", "\u202e", "\x1b[31m", "\n", '"', "'", "{}", "%s%n")


def bytes_of(rng, data):
    """The bytes with one to three mutations; at least one byte differs, or the length."""
    mutated = data
    while mutated == data:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            mutated = rng.choice(_BYTES)(rng, mutated)
    return mutated


def _flip(rng, data):
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:] if data else b"\1"


def _set_byte(rng, data):
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + bytes([rng.choice((0, 1, 9, 10, 34, 44, 45, 48, 57, 91, 123, 127, 128, 254, 255))]) + data[at + 1:]


def _cut_end(rng, data):
    return data[:rng.randrange(len(data))] if data else data


def _cut_part(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 4, 8, 64, 1000)):]


def _insert(rng, data):
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 1, 2, 4, 8, 300))
    return data[:at] + rng.choice((rng.randbytes(size), b"\0" * size, b"\xff" * size)) + data[at:]


def _repeat_part(rng, data):
    at = rng.randrange(len(data) + 1)
    part = data[at:at + rng.choice((1, 8, 100, 5000))]
    return data[:at] + part * rng.choice((2, 2, 50)) + data[at + len(part):]


def _integer(rng, data):
    """An integer of the machine, little-endian, over whatever is there."""
    size = rng.choice((2, 4, 8))
    at = rng.randrange(max(1, len(data) - size))
    return data[:at] + (rng.choice(INTEGERS) & 256**size - 1).to_bytes(size, "little") + data[at + size:]


def _replace_line(rng, data):
    """Lines swapped, repeated, removed."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return _insert(rng, data)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a] = rng.choice((lines[b], b"", lines[a] + lines[b], lines[a] * 2, lines[a].rstrip(b"\n")))
    return b"".join(lines)


def _digits(rng, data):
    """A decimal number of the text becomes another one."""
    spans, start = [], None
    for at, byte in enumerate(data + b" "):
        if 48 <= byte <= 57:
            start = at if start is None else start
        elif start is not None:
            spans.append((start, at))
            start = None
    if not spans:
        return _set_byte(rng, data)
    first, end = rng.choice(spans)
    number = rng.choice((str(rng.choice(INTEGERS)), "1e400", "9" * 40, "-0", "0.5", "00", "1_0", "0x10", ""))
    return data[:first] + number.encode() + data[end:]


def _empty(rng, data):
    return rng.choice((b"", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf" + data, data + data))


_BYTES = (_flip, _flip, _flip, _set_byte, _cut_end, _cut_part, _insert, _repeat_part, _integer, _replace_line, _digits, _digits, _empty)


def value_of(rng, value, types="any"):
    """The value with one leaf or one container inside changed. `types="kept"`: no leaf changes its type."""
    inside = types == "kept" and isinstance(value, dict)  # a record keeps its fields
    if isinstance(value, (dict, list)) and value and (inside or rng.random() < 0.85):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        copy = value.copy()
        copy[key] = value_of(rng, value[key], types)
        return copy
    if types == "kept" and (value is None or value == {}):
        return value
    if isinstance(value, dict):
        return _other_dict(rng, value)
    if isinstance(value, list):
        return _other_list(rng, value, types)
    if types == "any" and rng.random() < 0.2:
        return rng.choice((None, True, 0, -1, 0.5, "", "x", [], {}, [[]], {"x": 1}))
    return _other_leaf(rng, value)


def _other_dict(rng, value):
    copy = dict(value)
    key = rng.choice(list(copy)) if copy else "x"
    kind = rng.randrange(3)
    if kind == 0:
        copy.pop(key, None)
    elif kind == 1:
        copy[rng.choice(TEXTS[3:])] = copy.get(key)
    else:
        copy[key + "x"] = copy.pop(key, None)
    return copy


def _other_list(rng, value, types):
    copy = list(value)
    kind = rng.randrange(6) if copy else 5
    if kind == 0:
        copy.pop(rng.randrange(len(copy)))
    elif kind == 1:
        copy.insert(rng.randrange(len(copy)), rng.choice(copy))
    elif kind == 2:
        rng.shuffle(copy)
    elif kind == 3:
        copy *= rng.choice((2, 3, 300))
    elif kind == 4:
        del copy[rng.randrange(len(copy)):]
    elif types == "any":
        copy.append(rng.choice((0, None, "", 1e300, [])))
    return copy


def _other_leaf(rng, value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1 if value else 1, value * 2, rng.choice(INTEGERS[:2] + INTEGERS[3:]), rng.randrange(300)))
    if isinstance(value, float):
        return rng.choice((-value, value * 1.01, value + 1.0, rng.choice(FLOATS), rng.choice(FLOATS)))
    if isinstance(value, bytes):
        return bytes_of(rng, value)
    if isinstance(value, str):
        return rng.choice((value[:-1], value + "x", value.upper(), rng.choice(TEXTS), rng.choice(TEXTS)))
    return rng.choice((0, "x", [], 1.5))


def json_lines_of(rng, data):
    """JSON lines with one value changed, or one byte where the text is not JSON."""
    lines = data.splitlines()
    if not lines:
        return bytes_of(rng, data)
    at = rng.randrange(len(lines))
    try:
        lines[at] = json_text(value_of(rng, json.loads(lines[at]))).encode("utf-8", "surrogateescape")
    except ValueError:
        return bytes_of(rng, data)
    return b"\n".join(lines) + b"\n"


def json_text(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def hostile_text(rng):
    """A text for a value on the command line; no zero byte, which no argument can have."""
    texts = [text for text in TEXTS if "\0" not in text]
    numbers = [str(number) for number in INTEGERS] + ["1e30", "inf", "-inf", "nan", "0.0001", "9" * 40, "0x10", "1_000", "+1", "1,2", "1,,2", ","]
    others = ["/dev/null", "/dev/zero", "/dev/full", ".", "..", "missing", "run", "net.safetensors", "cuda", "cuda:0", "cuda:99", "cpu,cuda", "random",
              "rollouts:0", "rollouts:-1", "rollouts:5", "rollouts:99999999999999999999", "exec:", "exec:'", "exec:missing", "exec:true", "exec:false",
              "exec:cat", "exec:yes", "\udcff\udcfe", "a=b", "=", "x.y=z", "search.leaves=", "search.leaves=0", "[", "{", "true", "2x", "0x0", "1x1,uniform"]
    return rng.choice((rng.choice(texts), rng.choice(numbers), rng.choice(others)))
