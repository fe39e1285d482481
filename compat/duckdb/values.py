"""Encoders of column values: Bytes, text, OrderedBytes and Phoenix, ascending.

`check` compares them with the vectors that HBase's and Phoenix's own classes wrote
(crates/columnar/tests/vectors), so the rows made here equal those of these clients.

A value is an int (booleans are 0 and 1, times are counts), a float, a Decimal, or bytes; None is
null.
"""
import os
import struct
from decimal import Context, Decimal

# Enough digits for exact results of all computations here.
EXACT = Context(prec=100)

# Encodings of integers: number of bytes.
WHOLE = {
    "bytes_byte": 1, "bytes_short": 2, "bytes_int": 4, "bytes_long": 8,
    "ordered_int8": 1, "ordered_int16": 2, "ordered_int32": 4, "ordered_int64": 8,
    "phoenix_tinyint": 1, "phoenix_smallint": 2, "phoenix_integer": 4, "phoenix_bigint": 8, "phoenix_date": 8,
    "text_long": 8,
}
BOOLEAN = ("bytes_boolean", "text_boolean", "phoenix_boolean")
# Encodings of floating-point numbers: whether they have single precision.
REAL = {
    "bytes_float": True, "bytes_double": False, "text_double": False, "ordered_float32": True, "ordered_float64": False,
    "ordered_double": False, "phoenix_float": True, "phoenix_double": False,
}
DECIMAL = ("bytes_decimal", "text_decimal", "ordered_decimal", "phoenix_decimal")
RAW = ("raw", "ordered_string", "ordered_blob", "ordered_blob_copy", "phoenix_char")

# The first bytes of OrderedBytes.
HEADER = {
    "ordered_int8": 0x29, "ordered_int16": 0x2a, "ordered_int32": 0x2b, "ordered_int64": 0x2c, "ordered_float32": 0x30,
    "ordered_float64": 0x31, "ordered_string": 0x34, "ordered_blob": 0x37, "ordered_blob_copy": 0x38,
}
# Maximum number of digits in OrderedBytes.
ORDERED_DIGITS_MAX = 31
# Maximum bytes of a Phoenix DECIMAL.
PHOENIX_DECIMAL_BYTES_MAX = 21
MILLISECOND_NS = 1_000_000


def null(encoding):
    """The encoding of null; None if the encoding has none."""
    if encoding.startswith("ordered_"):
        return b"\x05"
    return b"" if encoding.startswith(("text_", "phoenix_")) else None


def encode(encoding, value):
    """The bytes of a value."""
    if encoding in BOOLEAN:
        return {"bytes": (b"\x00", b"\xff"), "text": (b"false", b"true"), "phoenix": (b"\x00", b"\x01")}[
            encoding.split("_")[0]][value]
    if encoding == "phoenix_timestamp":
        millis, nanos = divmod(value, MILLISECOND_NS)
        return _turned(millis, 8) + struct.pack(">I", nanos)
    if encoding in WHOLE:
        return _whole(encoding, value)
    if encoding in REAL:
        return _real(encoding, value)
    if encoding in DECIMAL:
        return _decimal(encoding, value)
    return _raw(encoding, value)


def descending(encoding, bytes_):
    """The same OrderedBytes value in descending order."""
    end = b"\x00" if encoding == "ordered_blob_copy" and bytes_ != b"\x05" else b""
    return _complement(bytes_ + end)


def _turned(value, width):
    """Two's complement with an inverted sign bit."""
    return (value + (1 << (8 * width - 1))).to_bytes(width, "big")


def _whole(encoding, value):
    width = WHOLE[encoding]
    if encoding == "text_long":
        return str(value).encode()
    if encoding.startswith("bytes_"):
        return value.to_bytes(width, "big", signed=True)
    header = bytes([HEADER[encoding]]) if encoding in HEADER else b""
    return header + _turned(value, width)


def _real(encoding, value):
    if encoding == "text_double":
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value)).encode()
    if encoding == "ordered_double":
        return _ordered_double(value)
    code, width = (">f", 4) if REAL[encoding] else (">d", 8)
    plain = struct.pack(code, value)
    if encoding.startswith("bytes_"):
        return plain
    bits = int.from_bytes(plain, "big")
    sign = 1 << (8 * width - 1)
    # All bits of a negative number are inverted; otherwise only the sign bit.
    bits = ~bits & (2 * sign - 1) if bits & sign else bits | sign
    if encoding.startswith("phoenix_"):
        return ((bits + 1) & (2 * sign - 1)).to_bytes(width, "big")
    return bytes([HEADER[encoding]]) + bits.to_bytes(width, "big")


def _ordered_double(value):
    special = {"inf": b"\x23", "-inf": b"\x07", "nan": b"\x26"}.get(repr(value))
    if special:
        return special
    # At least two digits, as Java prints numbers.
    short = f"{value:.1e}"
    return _ordered_number(Decimal(short if float(short) == value else repr(value)))


def _pairs(value):
    """A nonzero number as sign, exponent E and digit pairs P: 0.PPPP * 100^E."""
    sign, digits, exponent = EXACT.normalize(value).as_tuple()
    digits = list(digits)
    if (len(digits) + exponent) % 2:
        digits.insert(0, 0)
    hundreds = (len(digits) + exponent) // 2
    if len(digits) % 2:
        digits.append(0)
    return sign, hundreds, [10 * digits[at] + digits[at + 1] for at in range(0, len(digits), 2)]


def _ordered_number(value):
    if not value:
        return b"\x15"
    negative, exponent, pairs = _pairs(value)
    body = bytes([2 * pair + 1 for pair in pairs[:-1]] + [2 * pairs[-1]])
    size = _ordered_length(abs(exponent))
    if exponent > 10:
        head = b"\x08" + _complement(size) if negative else b"\x22" + size
    elif exponent > 0:
        head = bytes([0x13 - exponent if negative else 0x17 + exponent])
    else:
        head = b"\x14" + size if negative else b"\x16" + _complement(size)
    return head + (_complement(body) if negative else body)


def _ordered_length(number):
    """A number in variable-length encoding."""
    if number <= 240:
        return bytes([number])
    if number <= 2287:
        return bytes([241 + (number - 240) // 256, (number - 240) % 256])
    if number <= 67823:
        return b"\xf9" + (number - 2288).to_bytes(2, "big")
    size = (number.bit_length() + 7) // 8
    return bytes([247 + size]) + number.to_bytes(size, "big")


def _complement(bytes_):
    return bytes(byte ^ 0xff for byte in bytes_)


def _decimal(encoding, value):
    if encoding == "text_decimal":
        return format(value, "f").encode()
    if encoding == "ordered_decimal":
        return _ordered_number(value)
    if encoding == "bytes_decimal":
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return struct.pack(">i", -exponent) + unscaled.to_bytes(size, "big", signed=True)
    if not value:
        return b"\x80"
    negative, exponent, pairs = _pairs(value)
    if not negative:
        return bytes([192 + exponent, *(1 + pair for pair in pairs)])
    found = bytes([63 - exponent, *(101 - pair for pair in pairs)])
    return found if len(found) == PHOENIX_DECIMAL_BYTES_MAX else found + b"\x66"


def _raw(encoding, value):
    if encoding in ("raw", "phoenix_char"):
        return value
    header = bytes([HEADER[encoding]])
    if encoding == "ordered_string":
        return header + value + b"\x00"
    if encoding == "ordered_blob_copy":
        return header + value
    # Seven bits per byte; the top bit of all bytes but the last shows that more follow.
    parts = max(1, -(-8 * len(value) // 7))
    bits = int.from_bytes(value, "big") << (7 * parts - 8 * len(value))
    body = [bits >> (7 * (parts - 1 - at)) & 0x7f for at in range(parts)]
    return header + bytes([0x80 | part for part in body[:-1]] + body[-1:])


def check(directory):
    """Compares with all vectors in a supported form; returns their number, or raises."""
    checked = 0
    for name in ("bytes", "ordered", "phoenix"):
        with open(os.path.join(directory, name + ".txt")) as lines:
            for line in lines:
                if line.startswith("#"):
                    continue
                encoding, order, text, found = line.split()
                # Java writes some doubles with an extra digit; these are marked `other` if
                # ascending.
                if order == "other" or (encoding, order) == ("ordered_double", "desc"):
                    continue
                value = _of_vector(encoding, text)
                wrote = null(encoding) if value is None else encode(encoding, value)
                if order == "desc":
                    wrote = descending(encoding, wrote)
                if wrote != bytes.fromhex("" if found == "-" else found):
                    raise AssertionError(f"{line.strip()}: written as {wrote.hex()}")
                checked += 1
    return checked


def _of_vector(encoding, text):
    if text == "null":
        return None
    if encoding in REAL:
        return struct.unpack(">d", bytes.fromhex(text))[0]
    if encoding in DECIMAL:
        unscaled, scale = text.split("/")
        return Decimal(unscaled).scaleb(-int(scale), context=EXACT)
    if encoding in RAW:
        return bytes.fromhex("" if text == "-" else text)
    return int(text)
