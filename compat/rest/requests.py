"""The requests that compat/rest/run sends, in order: each is a name, method, path, headers and body.

The examples of HBase's reference guide on REST are in `examples`. `{id}` in a path is the id of
the scanner that was created last. Cells have explicit timestamps, so that responses are repeatable.
"""
import base64
import gzip
import json

XML = "text/xml"
JSON = "application/json"
PROTOBUF = "application/x-protobuf"
OCTETS = "application/octet-stream"
FORMATS = (("xml", XML), ("json", JSON), ("protobuf", PROTOBUF))
# Seconds since the epoch times 1000 of the cells; any fixed value.
TIME = 1700000000000


class Request:
    """One request."""

    def __init__(self, name, method, path, headers=None, body=b""):
        self.name = name
        self.method = method
        self.path = path
        self.headers = headers or {}
        self.body = body.encode() if isinstance(body, str) else body


def b64(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def get(name, path, accept=None, **headers):
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request(name, "GET", path, {**({"Accept": accept} if accept else {}), **headers})


def send(name, method, path, kind, body, **headers):
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request(name, method, path, {**({"Content-Type": kind} if kind else {}), **headers}, body)


def delete(name, path, **headers):
    return Request(name, "DELETE", path, headers)


# Protobuf, written here so that the requests do not depend on the code that is tested.

def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field: an int as varint, bytes or text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def cells_protobuf(rows):
    out = b""
    for key, cells in rows:
        row = field(1, key)
        for column, timestamp, value in cells:
            cell = field(2, column) + (field(3, timestamp) if timestamp is not None else b"") + field(4, value)
            row += field(2, cell)
        out += field(1, row)
    return out


def cells_json(rows):
    model = [{"key": b64(key), "Cell": [
        {"column": b64(column), **({} if timestamp is None else {"timestamp": timestamp}), "$": b64(value)}
        for column, timestamp, value in cells]} for key, cells in rows]
    return json.dumps({"Row": model})


def cells_xml(rows):
    out = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><CellSet>'
    for key, cells in rows:
        out += f'<Row key="{b64(key)}">'
        for column, timestamp, value in cells:
            stamp = "" if timestamp is None else f' timestamp="{timestamp}"'
            out += f'<Cell column="{b64(column)}"{stamp}>{b64(value)}</Cell>'
        out += "</Row>"
    return out + "</CellSet>"


def cells(kind, rows):
    return {XML: cells_xml, JSON: cells_json, PROTOBUF: cells_protobuf}[kind](rows)


def row(key, *cells_of_row):
    return (key, [(column, TIME if len(rest) == 1 else rest[1], rest[0]) for column, *rest in cells_of_row])


def examples():
    """The curl examples of HBase's reference guide, with its XML and JSON bodies."""
    yield get("book version cluster", "/version/cluster", XML)
    yield get("book status cluster", "/status/cluster", XML)
    yield get("book list of tables", "/", XML)
    yield get("book namespaces", "/namespaces/", XML)
    yield get("book describe namespace", "/namespaces/special_ns", XML)
    yield Request("book create namespace", "POST", "/namespaces/special_ns", {"Accept": XML})
    yield get("book describe namespace, created", "/namespaces/special_ns", XML)
    yield get("book tables of namespace", "/namespaces/special_ns/tables", XML)
    yield send("book alter namespace", "PUT", "/namespaces/special_ns", XML,
               '<NamespaceProperties><properties><entry><key>owner</key><value>a &amp; b</value></entry></properties>'
               '</NamespaceProperties>', Accept=XML)
    yield get("book describe namespace, altered", "/namespaces/special_ns", XML)
    yield Request("book delete namespace", "DELETE", "/namespaces/special_ns", {"Accept": XML})
    yield get("book schema of missing table", "/users/schema", XML)
    yield send("book create table", "POST", "/users/schema", XML,
               '<?xml version="1.0" encoding="UTF-8"?><TableSchema name="users"><ColumnSchema name="cf" /></TableSchema>',
               Accept=XML)
    yield get("book schema", "/users/schema", XML)
    yield send("book update schema", "POST", "/users/schema", XML,
               '<?xml version="1.0" encoding="UTF-8"?><TableSchema name="users"><ColumnSchema name="cf" '
               'KEEP_DELETED_CELLS="true" /></TableSchema>', Accept=XML)
    yield get("book schema, updated", "/users/schema", XML)
    yield send("book put row", "PUT", "/users/row1", XML,
               '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><CellSet><Row key="cm93NQo="><Cell '
               'column="Y2Y6ZQo=" timestamp="1700000000000">dmFsdWU1Cg==</Cell></Row></CellSet>', Accept=XML)
    yield send("book put row, JSON", "PUT", "/users/row1", JSON,
               '{"Row":[{"key":"cm93NQo=", "Cell": [{"column":"Y2Y6ZQo=", "$":"dmFsdWU1Cg==", "timestamp":1700000000001}]}]}',
               Accept=JSON)
    yield send("book put row1", "PUT", "/users/row1", JSON,
               cells_json([row("row1", ("cf:a", "value1"), ("cf:b", "value2"))]), Accept=JSON)
    yield get("book get row1", "/users/row1", XML)
    yield get("book get cell with timestamp", f"/users/row1/cf:a/{TIME + 1}", XML)
    yield get("book get column", "/users/row1/cf:a", XML)
    yield get("book get versions", "/users/row1/cf:a?v=2", XML)
    yield get("book multiget", "/users/multiget?row=row1&row=row5%0A&v=2", XML)
    yield send("book scanner", "PUT", "/users/scanner/", XML, '<Scanner batch="1"/>', Accept=XML)
    yield get("book scanner next", "/users/scanner/{id}", XML)
    yield delete("book scanner delete", "/users/scanner/{id}", Accept=XML)
    yield send("book scanner with filter", "PUT", "/users/scanner/", XML,
               '<Scanner batch="100"><filter>{"type": "PrefixFilter", "value": "cm93MQ=="}</filter></Scanner>', Accept=XML)
    yield get("book scanner with filter, next", "/users/scanner/{id}", XML)
    yield get("book scanner with filter, end", "/users/scanner/{id}", XML)
    yield delete("book scanner with filter, delete", "/users/scanner/{id}", Accept=XML)
    yield delete("book delete column", "/users/row1/cf:a", Accept=XML)
    yield delete("book delete row", "/users/row1", Accept=XML)
    yield get("book get deleted row", "/users/row1", XML)
    yield get("book exists", "/users/exists", XML)
    yield delete("book delete table", "/users/schema", Accept=XML)
    yield get("book exists, deleted", "/users/exists", XML)


def schemas():
    """Tables and their schema in all formats."""
    yield send("create t by XML", "PUT", "/t/schema", XML,
               '<TableSchema name="t" IS_META="false"><ColumnSchema name="f" VERSIONS="3" '
               'COMPRESSION="NONE" BLOOMFILTER="ROWCOL"/><ColumnSchema name="g" BLOCKCACHE="false"/><ColumnSchema '
               'name="h" TTL="1000000"/></TableSchema>')
    for name, kind in (*FORMATS, ("text", None), ("protobuf2", "application/protobuf")):
        yield get(f"schema of t, {name}", "/t/schema", kind)
    yield send("create u by JSON", "PUT", "/u/schema", JSON,
               '{"name":"u","ColumnSchema":[{"name":"f","VERSIONS":"2"},{"name":"x","IN_MEMORY":"true"}]}')
    yield get("schema of u", "/u/schema", JSON)
    yield send("replace schema of u", "PUT", "/u/schema", JSON,
               '{"name":"other","MAX_FILESIZE":"1073741824","ColumnSchema":[{"name":"f","VERSIONS":"5"}]}')
    yield get("replaced schema of u", "/u/schema", JSON)
    yield send("add to schema of u", "POST", "/u/schema", JSON,
               '{"name":"u","ColumnSchema":[{"name":"h","VERSIONS":"4"}]}')
    yield get("schema of u with a family more", "/u/schema", JSON)
    yield send("create p by protobuf", "PUT", "/p/schema", PROTOBUF,
               field(1, "p") + field(2, field(1, "MEMSTORE_FLUSHSIZE") + field(2, "67108864"))
               + field(3, field(1, "f") + field(2, field(1, "BLOCKSIZE") + field(2, "16384"))
                       + field(3, 5000000) + field(4, 7) + field(5, "NONE")))
    yield get("schema of p", "/p/schema", JSON)
    yield get("schema of p, protobuf", "/p/schema", PROTOBUF)
    yield get("schema of p, XML", "/p/schema", XML)
    yield send("schema without families", "PUT", "/nofam/schema", JSON, '{"name":"nofam"}')
    yield send("schema with a bad family name", "PUT", "/badfam/schema", JSON,
               '{"name":"badfam","ColumnSchema":[{"name":"a:b"}]}')
    yield send("schema with a bad table name", "PUT", "/bad%21name/schema", JSON,
               '{"name":"x","ColumnSchema":[{"name":"f"}]}')
    yield send("schema with a bad value", "PUT", "/badvalue/schema", JSON,
               '{"name":"badvalue","ColumnSchema":[{"name":"f","VERSIONS":"many"}]}')
    yield send("schema with a malformed JSON body", "PUT", "/x/schema", JSON, '{"name":')
    yield send("schema with a malformed XML body", "PUT", "/x/schema", XML, "<TableSchema")
    yield send("schema with a malformed protobuf body", "PUT", "/x/schema", PROTOBUF, b"\xff\xff\xff")
    yield send("schema with an empty JSON body", "PUT", "/x/schema", JSON, "")
    yield send("schema of a wrong media type", "PUT", "/x/schema", "text/csv", "a,b")
    yield get("schema of a missing table", "/missing/schema", JSON)
    yield get("schema of a missing table as text", "/missing/schema")
    yield delete("delete the schema of a missing table", "/missing/schema")
    yield get("schema in an unacceptable type", "/t/schema", "image/png")
    yield Request("schema by a wrong method", "PATCH", "/t/schema", {})
    for name, kind in (*FORMATS, ("text", None)):
        yield get(f"tables, {name}", "/", kind)
        yield get(f"regions of t, {name}", "/t/regions", kind)
    yield get("regions of a missing table", "/missing/regions", JSON)
    yield get("exists", "/t/exists")
    yield get("exists, JSON", "/t/exists", JSON)
    yield get("does not exist", "/missing/exists")
    yield get("table alone", "/t", JSON)
    yield get("table alone as text", "/t")
    yield get("too many parts", "/t/r/f:a/1/2/3", JSON)


def namespaces():
    for name, kind in (*FORMATS, ("text", None)):
        yield get(f"namespaces, {name}", "/namespaces", kind)
        yield get(f"namespace default, {name}", "/namespaces/default", kind)
        yield get(f"tables of namespace default, {name}", "/namespaces/default/tables", kind)
    yield send("create namespace", "POST", "/namespaces/n1", JSON, '{"properties":{"k":"v"}}')
    for name, kind in (*FORMATS, ("text", None)):
        yield get(f"namespace n1, {name}", "/namespaces/n1", kind)
    yield send("create namespace again", "POST", "/namespaces/n1", JSON, '{"properties":{"k":"v"}}')
    yield send("alter namespace", "PUT", "/namespaces/n1", JSON, '{"properties":{"k":"w","l":"1"}}')
    yield get("altered namespace", "/namespaces/n1", JSON)
    yield send("alter namespace by protobuf", "PUT", "/namespaces/n1", PROTOBUF, field(1, field(1, "k") + field(2, "p")))
    yield get("namespace altered by protobuf", "/namespaces/n1", JSON)
    yield send("alter missing namespace", "PUT", "/namespaces/n2", JSON, '{"properties":{"k":"w"}}')
    yield Request("create namespace without a body", "POST", "/namespaces/n3")
    yield get("namespace without properties", "/namespaces/n3", JSON)
    yield get("namespace without properties, XML", "/namespaces/n3", XML)
    yield send("create a table in a namespace", "PUT", "/n1:t/schema", JSON, '{"name":"t","ColumnSchema":[{"name":"f"}]}')
    yield get("tables of namespace n1", "/namespaces/n1/tables", JSON)
    yield get("schema in a namespace, escaped", "/n1%3At/schema", JSON)
    yield send("put to a table in a namespace", "PUT", "/n1:t/r", JSON, cells_json([row("r", ("f:a", "1"))]))
    yield get("row of a table in a namespace", "/n1:t/r", JSON)
    yield delete("delete a namespace with tables", "/namespaces/n1")
    yield delete("delete the table of a namespace", "/n1:t/schema")
    yield delete("delete namespace", "/namespaces/n1")
    yield delete("delete namespace again", "/namespaces/n1")
    yield delete("delete namespace n3 by its tables", "/namespaces/n3/tables")
    yield send("create namespace by its tables", "POST", "/namespaces/n5/tables", JSON, '{"properties":{"k":"v"}}')
    yield get("namespace created by its tables", "/namespaces/n5", JSON)
    yield send("alter namespace by its tables", "PUT", "/namespaces/n5/tables", JSON, '{"properties":{"k":"w"}}')
    yield get("namespace altered by its tables", "/namespaces/n5", JSON)
    yield send("alter missing namespace by its tables", "PUT", "/namespaces/n6/tables", JSON, '{"properties":{"k":"w"}}')
    yield Request("create namespace by its tables without a body", "POST", "/namespaces/n5/tables")
    yield delete("delete namespace by its tables", "/namespaces/n5/tables")
    yield delete("delete namespace by its tables again", "/namespaces/n5/tables")
    yield get("missing namespace", "/namespaces/n1", JSON)
    yield get("tables of a missing namespace", "/namespaces/n1/tables", JSON)
    yield send("namespace with a malformed body", "POST", "/namespaces/n4", JSON, '{"a"')
    yield Request("namespace by a wrong method", "POST", "/namespaces", {"Accept": JSON})


def rows():
    for name, kind in FORMATS:
        yield send(f"put one row, {name}", "PUT", f"/t/{name}1", kind,
                   cells(kind, [row(f"{name}1", ("f:a", "v1"), ("f:b", b"\x00\xff\x80"), ("g:", "empty qualifier"))]))
        for read, accept in (*FORMATS, ("octets", OCTETS), ("any", None), ("stars", "*/*")):
            yield get(f"row put by {name}, {read}", f"/t/{name}1", accept)
        yield send(f"put rows, {name}", "POST", "/t/fakerow", kind,
                   cells(kind, [row(f"{name}2", ("f:a", "2")), row(f"{name}3", ("f:a", "3"), ("g:x", "4", TIME + 5))]))
        yield get(f"rows put by {name}", f"/t/{name}2,{name}4", accept=kind)
        yield send(f"put without a row key, {name}", "PUT", f"/t/{name}4", kind, {
            XML: f'<CellSet><Row><Cell column="{b64("f:a")}" timestamp="{TIME}">{b64("x")}</Cell></Row></CellSet>',
            JSON: json.dumps({"Row": [{"Cell": [{"column": b64("f:a"), "timestamp": TIME, "$": b64("x")}]}]}),
            PROTOBUF: field(1, field(2, field(2, "f:a") + field(3, TIME) + field(4, "x"))),
        }[kind])
        yield get(f"row put without a key, {name}", f"/t/{name}4", JSON)
        yield send(f"put without a column, {name}", "PUT", f"/t/{name}5/f:p,g:q", kind, {
            XML: f'<CellSet><Row key="{b64(name + "5")}"><Cell timestamp="{TIME}">{b64("x")}</Cell>'
                 f'<Cell timestamp="{TIME}">{b64("y")}</Cell></Row></CellSet>',
            JSON: json.dumps({"Row": [{"key": b64(name + "5"), "Cell": [
                {"timestamp": TIME, "$": b64("x")}, {"timestamp": TIME, "$": b64("y")}]}]}),
            PROTOBUF: field(1, field(1, name + "5") + field(2, field(3, TIME) + field(4, "x"))
                            + field(2, field(3, TIME) + field(4, "y"))),
        }[kind])
        yield get(f"row put without a column, {name}", f"/t/{name}5", JSON)
    yield send("put octets", "PUT", "/t/oct1/f:a", OCTETS, b"\x00raw\xff", X_Timestamp=str(TIME))
    yield get("get octets", "/t/oct1/f:a", OCTETS)
    yield get("get octets by default", "/t/oct1/f:a")
    yield get("get octets of two columns", "/t/oct1/f:a,f:b", OCTETS)
    yield get("get octets of a family", "/t/oct1/f", OCTETS)
    yield get("get octets of a missing row", "/t/missing/f:a", OCTETS)
    yield send("put octets by headers", "PUT", "/t/oct/f:x", OCTETS, b"by headers", X_Row="oct2", X_Column="f:h",
               X_Timestamp=str(TIME))
    yield get("row put by headers", "/t/oct2", JSON)
    yield send("put octets without a column", "PUT", "/t/oct3", OCTETS, b"x", X_Timestamp=str(TIME))
    yield send("put octets without a column in the path", "PUT", "/t/oct3", OCTETS, b"x", X_Column="f:a",
               X_Timestamp=str(TIME))
    yield send("put octets with a family", "PUT", "/t/oct4/f", OCTETS, b"x", X_Timestamp=str(TIME))
    yield send("put octets with a bad timestamp", "PUT", "/t/oct4/f:a", OCTETS, b"x", X_Timestamp="soon")
    yield send("put without a content type", "PUT", "/t/oct5/f:a", None, b"y", X_Timestamp=str(TIME))
    yield get("row put without a content type", "/t/oct5", JSON)
    yield send("put with charset", "PUT", "/t/char1", "application/json; charset=utf-8",
               cells_json([row("char1", ("f:a", "1"))]))
    yield get("row put with charset", "/t/char1", "application/json;q=0.5, text/xml;q=0.9")
    yield get("two media types", "/t/char1", "text/xml, application/json")
    yield get("unacceptable media type", "/t/char1", "image/png")
    yield get("media range", "/t/char1", "application/*")
    yield get("text of a row", "/t/char1", "text/plain")
    yield get("row as application/protobuf", "/t/char1", "application/protobuf")
    yield send("put in a wrong media type", "PUT", "/t/r", "text/plain", "x")
    yield send("put in XML as application/xml", "PUT", "/t/r", "application/xml", cells_xml([row("r", ("f:a", "1"))]))
    # Versions and time ranges.
    for at in range(1, 5):
        yield send(f"put version {at}", "PUT", "/t/ver", JSON, cells_json([row("ver", ("f:a", f"v{at}", at * 10))]))
    yield get("newest version", "/t/ver/f:a", JSON)
    yield get("two versions", "/t/ver/f:a?v=2", JSON)
    yield get("more versions than stored", "/t/ver?v=100", JSON)
    yield get("zero versions", "/t/ver?v=0", JSON)
    yield get("negative versions", "/t/ver?v=-1", JSON)
    yield get("versions not a number", "/t/ver?v=x", JSON)
    yield get("versions not a number as text", "/t/ver?v=x")
    yield get("empty versions", "/t/ver?v=", JSON)
    yield get("before 30", "/t/ver/f:a/30", JSON)
    yield get("before 30, versions", "/t/ver/f:a/30?v=5", JSON)
    yield get("from 20 to 40", "/t/ver/f:a/20,40?v=5", JSON)
    yield get("all columns from 20 to 40", "/t/ver//20,40?v=5", JSON)
    yield get("empty time range", "/t/ver/f:a/20,20?v=5", JSON)
    yield get("reversed time range", "/t/ver/f:a/40,20?v=5", JSON)
    yield get("bad timestamp", "/t/ver/f:a/x", JSON)
    yield get("negative timestamp", "/t/ver/f:a/-5", JSON)
    yield get("slash at the end", "/t/ver/", JSON)
    yield get("slash after the column", "/t/ver/f:a/", JSON)
    yield get("uncached", "/t/ver/f:a?nocache=true", JSON)
    # Columns.
    yield send("put wide row", "PUT", "/t/wide", JSON, cells_json([row("wide", ("f:", "e"), ("f:a", "1"), ("f:a:b", "2"),
               ("f:c,d", "3"), ("f:e/f", "4"), ("f:g h", "5"), ("g:z", "6"), (b"f:\xe2\x82\xac", "7"))]))
    yield get("family", "/t/wide/f", JSON)
    yield get("empty qualifier", "/t/wide/f:", JSON)
    yield get("qualifier with colon", "/t/wide/f:a:b", JSON)
    yield get("two columns", "/t/wide/f:a,g:z", JSON)
    yield get("family and column", "/t/wide/g,f:a", JSON)
    yield get("column with a comma", "/t/wide/f:c%2Cd", JSON)
    yield get("column with a slash", "/t/wide/f:e%2Ff", JSON)
    yield get("column with a space", "/t/wide/f:g%20h", JSON)
    yield get("column with a plus", "/t/wide/f:g+h", JSON)
    yield get("column in UTF-8", "/t/wide/f:%E2%82%AC", JSON)
    yield get("missing column", "/t/wide/f:none", JSON)
    yield get("missing family", "/t/wide/none:a", JSON)
    yield get("empty column", "/t/wide/,f:a", JSON)
    yield get("only commas", "/t/wide/,", JSON)
    yield get("row of a missing table", "/missing/r", JSON)
    yield get("missing row", "/t/none", JSON)
    yield get("missing row as text", "/t/none")
    yield get("missing row, XML", "/t/none", XML)
    yield Request("head of a row", "HEAD", "/t/wide/g:z", {"Accept": JSON})
    yield Request("head of a missing row", "HEAD", "/t/none", {"Accept": JSON})
    yield Request("wrong method of a row", "PATCH", "/t/wide", {"Accept": JSON})
    yield Request("trace", "TRACE", "/t/wide", {})
    # Ranges and prefixes.
    yield get("range of rows", "/t/json1,json3", JSON)
    yield get("range of rows and a column", "/t/json1,json4/f:a", JSON)
    yield get("range without rows", "/t/json9,json9x", JSON)
    yield get("range to the end", "/t/wide,", JSON)
    yield get("prefix with columns", "/t/json*/f:a", JSON)
    yield get("prefix with columns and versions", "/t/ver*/f:a?v=3", JSON)
    # Errors of puts.
    yield send("put with a missing family", "PUT", "/t/r", JSON, cells_json([row("r", ("none:a", "1"))]))
    yield send("put to a missing table", "PUT", "/missing/r", JSON, cells_json([row("r", ("f:a", "1"))]))
    yield send("put of a column without colon", "PUT", "/t/r", JSON, cells_json([row("r", ("f", "1"))]))
    yield send("put without any column", "PUT", "/t/r", JSON, json.dumps({"Row": [{"key": b64("r"), "Cell": [{"$": "MQ=="}]}]}))
    yield send("put of a negative timestamp", "PUT", "/t/r", JSON, cells_json([row("r", ("f:a", "1", -7))]))
    yield send("put of invalid base64", "PUT", "/t/r", JSON,
               '{"Row":[{"key":"!!!","Cell":[{"column":"Y2Y6YQ==","$":"dg=="}]}]}')
    yield send("put of an unknown member", "PUT", "/t/r", JSON,
               '{"Row":[{"key":"cg==","Cell":[{"column":"ZjphCg==","$":"dg==","size":1}]}]}')
    yield send("put of an object as Row", "PUT", "/t/r", JSON, '{"Row":{"key":"cg==","Cell":[]}}')
    yield send("put of no rows", "PUT", "/t/r", JSON, '{"Row":[]}')
    yield send("put of an empty object", "PUT", "/t/r", JSON, "{}")
    yield send("put of an empty JSON body", "PUT", "/t/r", JSON, "")
    yield send("put of malformed JSON", "PUT", "/t/r", JSON, '{"Row":')
    yield send("put of text after the JSON", "PUT", "/t/r", JSON, cells_json([row("after", ("f:a", "1"))]) + " x")
    yield send("put of a timestamp as text", "PUT", "/t/r", JSON,
               json.dumps({"Row": [{"key": b64("tstext"), "Cell": [{"column": b64("f:a"), "timestamp": "77", "$": "MQ=="}]}]}))
    yield get("row with a timestamp as text", "/t/tstext", JSON)
    yield send("put of malformed XML", "PUT", "/t/r", XML, "<CellSet><Row")
    yield send("put of an empty XML body", "PUT", "/t/r", XML, "")
    yield send("put of other XML", "PUT", "/t/r", XML, "<Other/>")
    yield send("put of XML with an entity", "PUT", "/t/r", XML,
               '<!DOCTYPE x [<!ENTITY a "YQ==">]><CellSet><Row key="&a;"><Cell column="ZjphCg==">&a;</Cell></Row></CellSet>')
    yield send("put of XML with an unknown attribute", "PUT", "/t/r", XML,
               f'<CellSet other="1"><Row key="{b64("xmlattr")}" no="2"><Cell column="{b64("f:a")}" timestamp="5">MQ==</Cell>'
               '<More/></Row></CellSet>')
    yield get("row of XML with an unknown attribute", "/t/xmlattr", JSON)
    yield send("put of XML with a bad timestamp", "PUT", "/t/r", XML,
               f'<CellSet><Row key="cg=="><Cell column="{b64("f:a")}" timestamp="x">MQ==</Cell></Row></CellSet>')
    yield send("put of a row without cells", "PUT", "/t/r", JSON, '{"Row":[{"key":"cg==","Cell":[]}]}')
    yield send("put octets with a time in the path", "PUT", "/t/oct6/f:a/5", OCTETS, b"x", X_Timestamp=str(TIME))
    yield get("row put with a time in the path", "/t/oct6", JSON)
    yield get("row with a raw star", "/t/a*b", JSON)
    yield get("multiget by prefix", "/t/multigetx?row=json1", JSON)
    yield get("exists with more", "/t/exists/x", JSON)
    yield get("two slashes", "//t/ver", JSON)
    yield get("table and slash", "/t/", JSON)
    yield get("key with a zero byte", "/t/k%00", JSON)
    yield Request("options", "OPTIONS", "/t/schema")
    yield send("put of malformed protobuf", "PUT", "/t/r", PROTOBUF, b"\x0a\xff")
    yield send("put of an empty protobuf body", "PUT", "/t/r", PROTOBUF, b"")
    # Compression.
    yield send("put of gzip", "PUT", "/t/gz", JSON, gzip.compress(cells_json([row("gz", ("f:a", "z"))]).encode(), mtime=0),
               Content_Encoding="gzip")
    yield get("row put as gzip", "/t/gz", JSON)
    yield get("row as gzip", "/t/gz", JSON, Accept_Encoding="gzip, deflate")
    yield send("put of broken gzip", "PUT", "/t/gz", JSON, b"not gzip", Content_Encoding="gzip")
    # Deletes.
    yield delete("delete a version", "/t/ver/f:a/20")
    yield get("versions after the delete", "/t/ver/f:a?v=5", JSON)
    yield delete("delete a column", "/t/wide/f:a")
    yield delete("delete a family", "/t/wide/g")
    yield get("row after the deletes", "/t/wide", JSON)
    yield delete("delete two columns", "/t/wide/f:a:b,f:c%2Cd")
    yield delete("delete a row", "/t/wide")
    yield get("row after its delete", "/t/wide", JSON)
    yield delete("delete a missing row", "/t/none")
    yield delete("delete in a missing family", "/t/r/none:a")
    yield delete("delete in a missing table", "/missing/r")
    yield delete("delete a row up to a time", "/t/ver//30")
    yield get("row after its delete up to a time", "/t/ver?v=5", JSON)


def keys():
    """Row keys that need escapes."""
    for name, path, key in (("slash", "k%2Fs", "k/s"), ("comma", "k%2Cc", "k,c"), ("star", "k%2A", "k*"),
                            ("percent", "k%25", "k%"), ("space", "k%20s", "k s"), ("plus", "k%2Bp", "k+p"),
                            ("UTF-8", "%C3%A4", "ä"), ("question mark", "k%3F", "k?"), ("colon", "k:c", "k:c")):
        yield send(f"put key with {name}", "PUT", f"/t/{path}", JSON, cells_json([row(key, ("f:a", name))]))
        yield get(f"get key with {name}", f"/t/{path}", JSON)
        yield send(f"put octets to key with {name}", "PUT", f"/t/{path}/f:o", OCTETS, b"o", X_Timestamp=str(TIME))
    yield get("key with a raw plus", "/t/k+s", JSON)
    yield get("key with an invalid escape", "/t/%ZZ", JSON)
    yield get("key with a truncated escape", "/t/k%2", JSON)
    yield get("key that is not UTF-8", "/t/%FF", JSON)
    binary = b"\x00\x01\xfe\xff"
    yield send("put a binary key", "PUT", "/t/x", JSON, cells_json([row(binary, (b"f:\x00\xff", "binary"))]))
    url = base64.urlsafe_b64encode(binary).decode()
    column = base64.urlsafe_b64encode(b"f:\x00\xff").decode()
    for word in ("b64", "base64", "b64url", "base64url"):
        yield get(f"binary key by {word}", f"/t/{url}?e={word}", JSON)
    yield get("binary key without padding", f"/t/{url.rstrip('=')}?e=b64", JSON)
    yield get("binary key and column", f"/t/{url}/{column}?e=b64", JSON)
    yield get("binary key by header", f"/t/{url}", JSON, Encoding="b64")
    basic = base64.b64encode(binary).decode().replace("/", "%2F").replace("+", "%2B")
    yield get("binary key in the standard alphabet", f"/t/{basic}?e=b64basic", JSON)
    yield get("unknown encoding", f"/t/{url}?e=hex", JSON)
    yield get("invalid base64 key", "/t/%21%21?e=b64", JSON)
    yield delete("delete a binary key", f"/t/{url}?e=b64")
    yield get("deleted binary key", f"/t/{url}?e=b64", JSON)


def multigets():
    for name, kind in FORMATS:
        yield get(f"multiget, {name}", "/t/multiget?row=json1&row=none&row=json3", kind)
    yield get("multiget by default", "/t/multiget?row=json1")
    yield get("multiget of missing rows", "/t/multiget?row=no1&row=no2", JSON)
    yield get("multiget without rows", "/t/multiget", JSON)
    yield get("multiget with columns", "/t/multiget/f:a,g:x?row=json1&row=json3", JSON)
    yield get("multiget with row specifications", "/t/multiget?row=json1/f:b&row=json3/g:x", JSON)
    yield get("multiget in another order", "/t/multiget?row=json3&row=json1&row=json2", JSON)
    yield get("multiget of the same row", "/t/multiget?row=json2&row=json2", JSON)
    yield get("multiget of versions", "/t/multiget?row=xml1&row=char1&v=3", JSON)
    yield get("multiget with a filter", "/t/multiget?row=json1&row=json3&filter=ValueFilter(%3D%2C%20%27binary%3Av1%27)", JSON)
    yield get("multiget with an encoded filter", "/t/multiget?row=json1&row=json3&filter_b64="
              + base64.urlsafe_b64encode(b"ValueFilter(=, 'binary:v1')").decode(), JSON)
    yield get("multiget with a bad filter", "/t/multiget?row=json1&filter=Nonsense(", JSON)
    yield get("multiget of encoded rows", "/t/multiget?e=b64&row=" + base64.urlsafe_b64encode(b"json1").decode(), JSON)
    yield get("multiget in a missing table", "/missing/multiget?row=a", JSON)
    yield get("multiget in a missing family", "/t/multiget/none:a?row=json1", JSON)


def checks():
    def check(name, kind_of_check, rows_of_body, path="/t/chk", query="", kind=JSON):
        return send(name, "PUT", f"{path}?check={kind_of_check}{query}", kind, cells(kind, rows_of_body))

    yield check("check-and-put of an absent cell", "put", [row("chk", ("f:a", "1"), ("f:a", ""))])
    yield get("row after check-and-put", "/t/chk", JSON)
    yield check("check-and-put that fails", "put", [row("chk", ("f:a", "2", TIME + 1), ("f:a", "0"))])
    yield check("check-and-put that succeeds", "put", [row("chk", ("f:a", "2", TIME + 1), ("f:b", "3", TIME + 1), ("f:a", "1"))])
    yield get("row after the second check-and-put", "/t/chk", JSON)
    for name, kind in FORMATS:
        yield check(f"check-and-put, {name}", "put", [row("chk", ("f:a", "2", TIME + 2), ("f:a", "2"))], kind=kind)
    yield check("check-and-put of another column", "put", [row("chk", ("f:b", "2"), ("f:a", "1"))])
    yield check("check-and-put of one cell", "put", [row("chk", ("f:a", "2"))])
    yield check("check-and-put of a family", "put", [row("chk", ("f:a", "2"), ("f", "1"))])
    yield check("check-and-put of an empty qualifier", "put", [row("chk", ("f:", "2"), ("f:", ""))])
    yield check("check by upper case", "PUT", [row("chk", ("f:u", "2"), ("f:u", ""))])
    yield check("check without a word", "", [row("chk", ("f:w", "2"))])
    yield check("append with results", "append", [row("apr", ("f:a", "x"))], path="/t/apr", query="&rr=true")
    yield check("increment without cells", "increment", [("inc", [])], path="/t/inc")
    yield check("check-and-delete without cells", "delete", [("inc", [])], path="/t/inc")
    yield check("check-and-put of two rows", "put", [row("chk", ("f:a", "2")), row("chk2", ("f:a", "2"))])
    yield send("check-and-put without a key", "PUT", "/t/chk?check=put", JSON, json.dumps({"Row": [{"Cell": [
        {"column": b64("f:a"), "timestamp": TIME + 3, "$": b64("9")}, {"column": b64("f:a"), "$": b64("2")}]}]}))
    yield get("row after check-and-put without a key", "/t/chk", JSON)
    yield check("check-and-delete that fails", "delete", [row("chk", ("f:b", "x"))], path="/t/chk/f:b")
    yield check("check-and-delete that succeeds", "delete", [row("chk", ("f:b", "3"))], path="/t/chk/f:b")
    yield get("row after check-and-delete", "/t/chk", JSON)
    yield check("check-and-delete without a column in the path", "delete", [row("chk", ("f:a", "zz"))])
    yield send("put for check-and-delete", "PUT", "/t/chkd", JSON, cells_json([row("chkd", ("f:a", "1"), ("f:b", "2"), ("g:c", "3"))]))
    yield check("check-and-delete of cells", "delete", [row("chkd", ("f:b", ""), ("g", ""), ("f:a", "1"))], path="/t/chkd")
    yield get("row after check-and-delete of cells", "/t/chkd", JSON)
    yield check("unknown check", "maybe", [row("chk", ("f:a", "2"), ("f:a", "1"))])
    yield check("check in a missing table", "put", [row("chk", ("f:a", "2"), ("f:a", "1"))], path="/missing/chk")
    yield check("check in a missing family", "put", [row("chk", ("none:a", "2"), ("none:a", "1"))])
    yield check("append", "append", [row("app", ("f:a", "x", None))], path="/t/app")
    yield check("append again", "append", [row("app", ("f:a", "yz", None), ("f:b", "1", None))], path="/t/app")
    yield get("octets after append", "/t/app/f:a", OCTETS)
    yield check("append without a colon", "append", [row("app", ("f", "x", None))], path="/t/app")
    yield check("append in a missing family", "append", [row("app", ("none:a", "x", None))], path="/t/app")
    yield check("append in a missing table", "append", [row("app", ("f:a", "x", None))], path="/missing/app")
    yield check("increment", "increment", [row("inc", ("f:n", "5", None))], path="/t/inc")
    yield check("increment by a negative number", "increment", [row("inc", ("f:n", "-2", None))], path="/t/inc")
    yield get("octets after increment", "/t/inc/f:n", OCTETS)
    yield check("increment by text", "increment", [row("inc", ("f:n", "five", None))], path="/t/inc")
    yield check("increment of a cell of text", "increment", [row("json1", ("f:a", "1", None))], path="/t/json1")
    yield check("increment in a missing family", "increment", [row("inc", ("none:n", "1", None))], path="/t/inc")
    yield check("append of two rows", "append", [row("app", ("f:a", "x", None)), row("b", ("f:a", "x", None))], path="/t/app")


def scanners():
    for name, kind in FORMATS:
        body = {
            XML: f'<Scanner batch="2" startRow="{b64("json1")}" endRow="{b64("json9")}"><column>{b64("f:a")}</column></Scanner>',
            JSON: json.dumps({"batch": 2, "startRow": b64("json1"), "endRow": b64("json9"), "column": [b64("f:a")]}),
            PROTOBUF: field(1, "json1") + field(2, "json9") + field(3, "f:a") + field(4, 2),
        }[kind]
        yield send(f"scanner, {name}", "PUT", "/t/scanner", kind, body)
        for at in range(1, 5):
            yield get(f"scanner next {at}, {name}", "/t/scanner/{id}", kind)
        yield delete(f"scanner delete, {name}", "/t/scanner/{id}")
        yield get(f"scanner next after delete, {name}", "/t/scanner/{id}", kind)
        yield delete(f"scanner delete again, {name}", "/t/scanner/{id}")
    yield send("scanner by POST", "POST", "/t/scanner", JSON, '{"batch":1}')
    yield get("scanner next octets", "/t/scanner/{id}", OCTETS)
    yield get("scanner next any", "/t/scanner/{id}")
    yield get("scanner next rows", "/t/scanner/{id}?n=2", JSON)
    yield get("scanner next cells", "/t/scanner/{id}?c=3", JSON)
    yield delete("scanner by POST delete", "/t/scanner/{id}")
    yield send("scanner of all", "PUT", "/t/scanner", JSON, "{}")
    yield get("scanner of all next", "/t/scanner/{id}", JSON)
    yield get("scanner of all end", "/t/scanner/{id}", JSON)
    yield delete("scanner of all delete", "/t/scanner/{id}")
    yield send("scanner of a whole row split", "PUT", "/t/scanner", XML,
               f'<Scanner batch="2" startRow="{b64("json1")}" endRow="{b64("json2")}"/>')
    yield get("scanner of a split row 1", "/t/scanner/{id}", JSON)
    yield get("scanner of a split row 2", "/t/scanner/{id}", JSON)
    yield get("scanner of a split row 3", "/t/scanner/{id}", JSON)
    yield send("scanner of times", "PUT", "/t/scanner", JSON, json.dumps({"startTime": TIME + 1, "endTime": TIME + 9, "caching": 5,
               "maxVersions": 2}))
    yield get("scanner of times next", "/t/scanner/{id}", JSON)
    yield send("scanner of a missing table", "PUT", "/missing/scanner", JSON, "{}")
    yield get("scanner of a missing table next", "/missing/scanner/{id}", JSON)
    yield send("scanner of a missing family", "PUT", "/t/scanner", JSON, json.dumps({"column": [b64("none:a")]}))
    yield get("scanner of a missing family next", "/t/scanner/{id}", JSON)
    yield send("scanner with an empty body", "PUT", "/t/scanner", JSON, "")
    yield send("scanner with an empty XML body", "PUT", "/t/scanner", XML, "")
    yield send("scanner with an empty protobuf body", "PUT", "/t/scanner", PROTOBUF, b"")
    yield send("scanner with an unknown member", "PUT", "/t/scanner", JSON, '{"rows":1}')
    yield send("scanner with a wrong media type", "PUT", "/t/scanner", "text/plain", "x")
    yield send("scanner with a bad number", "PUT", "/t/scanner", XML, '<Scanner batch="x"/>')
    yield get("scanner that is unknown", "/t/scanner/abc", JSON)
    yield get("scanner that is unknown, octets", "/t/scanner/abc", OCTETS)
    yield delete("scanner that is unknown, delete", "/t/scanner/abc")
    yield get("scanner without an id", "/t/scanner", JSON)
    yield from filters()


def filters():
    """Filters in JSON form, over rows that were put above."""
    binary = lambda text: {"type": "BinaryComparator", "value": b64(text)}
    specs = {
        "ColumnCountGetFilter": {"type": "ColumnCountGetFilter", "limit": "2"},
        "ColumnPaginationFilter": {"type": "ColumnPaginationFilter", "limit": "1", "offset": "1"},
        "ColumnPrefixFilter": {"type": "ColumnPrefixFilter", "value": b64("a")},
        "ColumnRangeFilter": {"type": "ColumnRangeFilter", "minColumn": b64("a"), "minColumnInclusive": True,
                              "maxColumn": b64("c"), "maxColumnInclusive": False},
        "DependentColumnFilter": {"type": "DependentColumnFilter", "family": b64("f"), "qualifier": b64("a"),
                                  "dropDependentColumn": True, "op": "EQUAL", "comparator": binary("v1")},
        "FamilyFilter": {"type": "FamilyFilter", "op": "EQUAL", "comparator": binary("g")},
        "FilterList": {"type": "FilterList", "op": "MUST_PASS_ALL", "filters": [
            {"type": "RowFilter", "op": "EQUAL", "comparator": {"type": "BinaryPrefixComparator", "value": b64("json")}},
            {"type": "ValueFilter", "op": "NOT_EQUAL", "comparator": binary("v1")}]},
        "FirstKeyOnlyFilter": {"type": "FirstKeyOnlyFilter"},
        "FuzzyRowFilter": {"type": "FuzzyRowFilter", "fuzzyKeys": [{"key": b64("json?"), "mask": b64(b"\x00\x00\x00\x00\x01")}]},
        "InclusiveStopFilter": {"type": "InclusiveStopFilter", "value": b64("json2")},
        "KeyOnlyFilter": {"type": "KeyOnlyFilter"},
        "MultipleColumnPrefixFilter": {"type": "MultipleColumnPrefixFilter", "prefixes": [b64("x"), b64("b")]},
        "MultiRowRangeFilter": {"type": "MultiRowRangeFilter", "ranges": [
            {"startRow": b64("json1"), "startRowInclusive": True, "stopRow": b64("json2"), "stopRowInclusive": False},
            {"startRow": b64("json3"), "startRowInclusive": True, "stopRow": b64("json4"), "stopRowInclusive": True}]},
        "PageFilter": {"type": "PageFilter", "value": "2"},
        "PrefixFilter": {"type": "PrefixFilter", "value": b64("json")},
        "QualifierFilter": {"type": "QualifierFilter", "op": "GREATER", "comparator": binary("b")},
        "RandomRowFilter": {"type": "RandomRowFilter", "chance": 1.5},
        "RowFilter": {"type": "RowFilter", "op": "EQUAL", "comparator": {"type": "RegexStringComparator", "value": "^js.n[12]$"}},
        "SingleColumnValueFilter": {"type": "SingleColumnValueFilter", "op": "EQUAL", "family": b64("f"), "qualifier": b64("a"),
                                    "comparator": binary("v1"), "ifMissing": True, "latestVersion": True},
        "SingleColumnValueExcludeFilter": {"type": "SingleColumnValueExcludeFilter", "op": "EQUAL", "family": b64("f"),
                                           "qualifier": b64("a"), "comparator": binary("v1")},
        "SkipFilter": {"type": "SkipFilter", "filters": [{"type": "ValueFilter", "op": "NOT_EQUAL", "comparator": binary("v1")}]},
        "TimestampsFilter": {"type": "TimestampsFilter", "timestamps": [str(TIME + 5)]},
        "ValueFilter": {"type": "ValueFilter", "op": "EQUAL", "comparator": {"type": "SubstringComparator", "value": "V1"}},
        "WhileMatchFilter": {"type": "WhileMatchFilter", "filters": [{"type": "PrefixFilter", "value": b64("json")}]},
        "BitComparator": {"type": "ValueFilter", "op": "EQUAL", "comparator": {"type": "BitComparator", "value": b64("v1"), "op": "AND"}},
        "NullComparator": {"type": "ValueFilter", "op": "EQUAL", "comparator": {"type": "NullComparator"}},
        "unknown filter": {"type": "NoFilter"},
        "unknown comparator": {"type": "ValueFilter", "op": "EQUAL", "comparator": {"type": "NoComparator"}},
        "unknown operator": {"type": "ValueFilter", "op": "LIKE", "comparator": binary("v1")},
    }
    for name, spec in specs.items():
        body = {"startRow": b64("json"), "endRow": b64("jsoo"), "filter": json.dumps(spec)}
        yield send(f"scanner with {name}", "PUT", "/t/scanner", JSON, json.dumps(body))
        yield get(f"scanner with {name}, next", "/t/scanner/{id}", JSON)
        yield delete(f"scanner with {name}, delete", "/t/scanner/{id}")
    yield send("scanner with a filter that is not JSON", "PUT", "/t/scanner", JSON, json.dumps({"filter": "PrefixFilter('a')"}))
    yield send("scanner with an empty filter", "PUT", "/t/scanner", JSON, json.dumps({"filter": "{}"}))


def stateless():
    for name, kind in (*FORMATS, ("any", None)):
        yield get(f"scan of a range, {name}", "/t/*?startrow=json1&endrow=json3", kind)
        yield get(f"scan of a prefix, {name}", "/t/json*", kind)
        yield get(f"scan without rows, {name}", "/t/*?startrow=nn&endrow=no", kind)
    yield get("scan as octets", "/t/*", OCTETS)
    yield get("scan with a limit", "/t/*?limit=2", JSON)
    yield get("scan with columns", "/t/*?startrow=json1&limit=3&column=f:a&column=g", JSON)
    yield get("scan with a batch size", "/t/json*?batchsize=1&limit=3", JSON)
    yield get("scan with versions", "/t/ver*?maxversions=5", JSON)
    yield get("scan of times", f"/t/*?starttime={TIME + 5}&endtime={TIME + 6}", JSON)
    yield get("scan reversed", "/t/*?reversed=true&startrow=json3&limit=2", JSON)
    yield get("scan of a prefix reversed", "/t/json*?reversed=true", JSON)
    yield get("scan uncached", "/t/json*?cacheblocks=false&limit=1", JSON)
    yield get("scan with a filter", "/t/*?filter=PrefixFilter(%27json%27)%20AND%20KeyOnlyFilter()", JSON)
    yield get("scan of a prefix with a filter", "/t/json*?filter=ValueFilter(%3D%2C%27binary%3A3%27)", JSON)
    yield get("scan with an encoded filter", "/t/*?filter_b64=" + base64.urlsafe_b64encode(b"PrefixFilter('json')").decode(), JSON)
    yield get("scan with a bad filter", "/t/*?filter=Nonsense(", JSON)
    yield get("scan with a bad number", "/t/*?limit=x", JSON)
    yield get("scan of a missing table", "/missing/*", JSON)
    yield get("scan of a missing family", "/t/*?column=none:a", JSON)
    yield get("scan as gzip", "/t/json*", JSON, Accept_Encoding="gzip")
    yield Request("scan by a wrong method", "POST", "/t/*", {"Accept": JSON})


def cluster():
    for name, kind in (*FORMATS, ("text", None)):
        yield get(f"version, {name}", "/version", kind)
        yield get(f"version of REST, {name}", "/version/rest", kind)
        yield get(f"version of the cluster, {name}", "/version/cluster", kind)
        yield get(f"status of the cluster, {name}", "/status/cluster", kind)
    yield get("unknown version", "/version/other", JSON)
    yield get("status alone", "/status", JSON)
    yield Request("put of the version", "PUT", "/version", {"Content-Type": JSON}, b"{}")
    yield Request("unknown method", "BREW", "/version", {})


def disabled():
    """Deletes tables; an open scanner of a deleted table fails."""
    yield send("scanner before the delete", "PUT", "/u/scanner", JSON, '{"batch":1}')
    for table in ("t", "u", "p"):
        yield delete(f"delete {table}", f"/{table}/schema")
    yield get("scanner after the delete", "/u/scanner/{id}", JSON)
    yield get("row of a deleted table", "/t/json1", JSON)
    yield get("tables at the end", "/", JSON)


def all_requests():
    for group in (examples, schemas, namespaces, rows, keys, multigets, checks, scanners, stateless, cluster, disabled):
        yield from group()
