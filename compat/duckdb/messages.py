"""A minimal hand-written encoder and parser of protocol buffers."""
import struct


def varint(number):
    found = bytearray()
    while number > 0x7f:
        found.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*found, number])


def whole(field, number):
    """An unsigned number, an enum or a boolean."""
    return varint(field << 3) + varint(number)


def signed(field, number):
    """A `sint64`."""
    return whole(field, (number << 1) ^ (number >> 63) if number < 0 else number << 1)


def real(field, number):
    return varint(field << 3 | 1) + struct.pack("<d", number)


def raw(field, bytes_):
    """Bytes, a string, or a message."""
    return varint(field << 3 | 2) + varint(len(bytes_)) + bytes_


def parsed(message):
    """The fields of a message: by number, a list of all values in order: ints, floats or bytes."""
    fields, at = {}, 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
        elif key & 7 == 1:
            (value,), at = struct.unpack_from("<d", message, at), at + 8
        elif key & 7 == 2:
            length, at = _varint(message, at)
            value, at = message[at:at + length], at + length
        else:
            (value,), at = struct.unpack_from("<I", message, at), at + 4
        fields.setdefault(key >> 3, []).append(value)
    return fields


def delimited(message):
    return varint(len(message)) + message


def split_delimited(bytes_):
    """Splits a length-prefixed message from the rest."""
    length, at = _varint(bytes_, 0)
    return bytes_[at:at + length], bytes_[at + length:]


def unsigned_to_signed(number):
    """Decodes a `sint64`."""
    return number >> 1 if not number & 1 else -(number >> 1) - 1


def _varint(bytes_, at):
    number = shift = 0
    while True:
        byte = bytes_[at]
        number |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
