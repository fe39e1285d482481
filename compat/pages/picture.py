"""Small screenshots: a palette of the most frequent colours, well compressed."""
import base64
import struct
import zlib

# Decodes a PNG in the browser, which is fast: returns the palette and one byte per pixel.
INDEXED = """
(async () => {
  const image = await createImageBitmap(await (await fetch('data:image/png;base64,%s')).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const dots = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const dot of dots) counts.set(dot, (counts.get(dot) || 0) + 1);
  const palette = [...counts].sort((one, other) => other[1] - one[1]).slice(0, 256).map(([dot]) => dot);
  const parts = dot => [dot & 255, dot >> 8 & 255, dot >> 16 & 255];
  const known = palette.map(parts);
  const places = new Map();
  for (const dot of counts.keys()) {
    const [red, green, blue] = parts(dot);
    let best = 0, least = Infinity;
    known.forEach(([r, g, b], at) => {
      const far = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
      if (far < least) { least = far; best = at; }
    });
    places.set(dot, best);
  }
  let text = '';
  const indexes = new Uint8Array(dots.length);
  dots.forEach((dot, at) => { indexes[at] = places.get(dot); });
  for (let at = 0; at < indexes.length; at += 8192) text += String.fromCharCode(...indexes.subarray(at, at + 8192));
  return {width: image.width, height: image.height, palette: known.flat(), dots: btoa(text)};
})()
"""


def write(browser, png, path):
    """Writes a PNG (in Base64) with a palette to `path`; returns its bytes. Leaves the browser on
    an empty page."""
    browser.open("about:blank")
    taken = browser.evaluate(INDEXED % png)
    dots, width = base64.b64decode(taken["dots"]), taken["width"]
    # No row filter: palette indexes of similar colours are not close to each other.
    rows = b"".join(b"\0" + dots[at:at + width] for at in range(0, len(dots), width))
    header = struct.pack(">IIBBBBB", width, taken["height"], 8, 3, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"PLTE", bytes(taken["palette"]))
    data += _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    with open(path, "wb") as file:
        file.write(data)
    return len(data)


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
