"""Sends requests and records exchanges: requests with their responses, as lines of JSON."""
import base64
import gzip
import http.client
import json
import re

# Response headers that are recorded and compared.
HEADERS = ("allow", "cache-control", "content-encoding", "content-length", "content-type", "location", "x-column",
           "x-content-type-options", "x-frame-options", "x-row", "x-timestamp", "x-xss-protection")
# The `Host` header of all requests. URLs in responses repeat it.
HOST = "localhost:8080"
TIMEOUT_S = 120


def exchanges(port, requests):
    """Sends the requests in order to a server on loopback. Yields each with its response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    scanner = "none"
    for request in requests:
        path = request.path.replace("{id}", scanner)
        status, headers, body = _send(connection, request, path)
        location = headers.get("location", "")
        if "/scanner/" in location:
            scanner = location.rsplit("/", 1)[1]
            headers["location"] = location.replace(scanner, "ID")
        yield record(request, status, headers, body)
    connection.close()


def _send(connection, request, path):
    connection.putrequest(request.method, path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", HOST)
    for name, value in request.headers.items():
        connection.putheader(name, value)
    if request.body or request.method in ("PUT", "POST", "PATCH"):
        connection.putheader("Content-Length", str(len(request.body)))
    try:
        connection.endheaders(request.body)
    except (BrokenPipeError, ConnectionResetError):
        raise RuntimeError(f"{request.name}: the server closed the connection before it read the request") from None
    response = connection.getresponse()
    body = response.read()
    headers = {name.lower(): value for name, value in response.getheaders() if name.lower() in HEADERS}
    if response.will_close:
        connection.close()
    return response.status, headers, body


def record(request, status, headers, body):
    """One exchange as a dictionary; bodies that are not text are base64."""
    headers = dict(headers)
    if headers.get("content-encoding") == "gzip":
        # Compressors differ; the content counts.
        body = gzip.decompress(body)
    # Normalized bodies have another length, and a 304 has the length of a body that is not sent.
    headers.pop("content-length", None)
    if "x-timestamp" in headers:
        headers["x-timestamp"] = normalized(headers["x-timestamp"].encode()).decode()
    exchange = {"name": request.name, "method": request.method, "path": request.path,
                "request_headers": request.headers}
    put_body(exchange, "request_body", request.body)
    exchange["status"] = status
    exchange["headers"] = dict(sorted(headers.items()))
    if not VOLATILE.match(request.name):
        put_body(exchange, "body", normalized(body))
    return exchange


def put_body(exchange, name, body):
    if not body:
        return
    try:
        text = body.decode()
        if any(ord(letter) < 32 and letter not in "\r\n\t" for letter in text):
            raise ValueError
        exchange[name] = text
    except ValueError:
        exchange[name + "64"] = base64.b64encode(body).decode()


# Exchanges whose bodies depend on the server, its load or its clock.
VOLATILE = re.compile("(book )?(version|status)|regions of t, protobuf|append with results")

# Parts of bodies that differ between two runs or servers, and what replaces them. The Rust test
# crates/server/tests/rest.rs has the same list.
REPLACEMENTS = [
    # Times of now; those of requests begin with 1700000000.
    (rb"\b1[7-9](0000000[1-9]|000000[1-9]|00000[1-9]|0000[1-9]|000[1-9]|00[1-9]|0[1-9]|[1-9])\d*\b", b"0"),
    (rb"[0-9a-f]{32}", b"MD5"),
    (rb"(localhost|127\.0\.0\.1):\d{5}", b"HOST:PORT"),
    (rb"org\.apache[\w.]*ServletContainer-[0-9a-f]+|\bgrampus\b", b"SERVLET"),
    # An attribute that HBase's master adds to each table.
    (rb',"hbase\.store\.file-tracker\.impl":"DEFAULT"', b""),
    (rb' hbase\.store\.file-tracker\.impl="DEFAULT"', b""),
    (rb", hbase\.store\.file-tracker\.impl => 'DEFAULT'", b""),
    (rb"\x12\x28\x0a\x1dhbase\.store\.file-tracker\.impl\x12\x07DEFAULT", b""),
    # Java stack traces: only the class of the first exception is compared.
    (rb"^((?:Bad request|Not found|Forbidden|Unavailable)\r\n[\w.$]+(?:Exception|Error))(?s:.*)$", rb"\1"),
]


def normalized(body):
    """The body without parts that differ between two runs or servers."""
    for pattern, replacement in REPLACEMENTS:
        body = re.sub(pattern, replacement, body)
    return body


def response_of(exchange):
    """The part of an exchange that is compared. The order of members of JSON is free."""
    body = exchange.get("body")
    if exchange["headers"].get("content-type") == "application/json" and body:
        try:
            body = json.loads(body)
        except ValueError:
            pass
    return exchange["status"], exchange["headers"], body, exchange.get("body64")


def lines(exchanges):
    return "".join(json.dumps(exchange, ensure_ascii=False) + "\n" for exchange in exchanges)
