"""The calls that both servers get, in order. Arguments are structs by field number."""
from dataclasses import dataclass

from exchange import I16, I32, I64, SCANNER, Byte, Map


@dataclass
class Call:
    """A call of a method."""
    name: str
    service: str
    method: str
    arguments: dict
    # Whether only the structure of the response is compared.
    compares_shape: bool = False


class Calls:
    """Collects the calls of a service."""

    def __init__(self, service):
        self.service = service
        self.all = []

    def __call__(self, method, *arguments, name=None, shape=False):
        """A call with arguments numbered from 1; None for one that is absent."""
        fields = {number: argument for number, argument in enumerate(arguments, 1) if argument is not None}
        count = sum(call.method == method for call in self.all)
        label = name or f"{self.service} {method}" + (f" {count + 1}" if count else "")
        self.all.append(Call(label, self.service, method, fields, shape))


def all_calls():
    return thrift1() + thrift2()


def mutation(column, value=None, delete=None, wal=None):
    fields = {1: delete, 2: column, 3: value, 4: wal}
    return {number: field for number, field in fields.items() if field is not None}


def family(name, **attributes):
    numbers = {"versions": 2, "compression": 3, "in_memory": 4, "bloom": 5, "cache": 8, "ttl": 9}
    return {1: name, **{numbers[key]: value for key, value in attributes.items()}}


def thrift1():
    call = Calls("one")
    none = Map()
    call("getThriftServerType")
    call("getClusterId", shape=True)
    call("noSuchMethod", "x")
    call("getTableNames")
    # Tables.
    call("createTable", "t1", [family("f", versions=I32(3), cache=True), family("g:"), family("h", compression="GZ", bloom="ROW", in_memory=True, ttl=I32(5000))])
    call("createTable", "t1", [family("f")])
    call("createTable", "t2", [family("f", bloom="NOPE")])
    call("createTable", "t2", [family("f", compression="nope")])
    call("createTable", "t2", [family("")])
    call("createTable", "t2", [{2: I32(1)}])
    call("createTable", "t2", [family("f", versions=I32(0))])
    call("createTable", "t 2", [family("f")])
    call("createTable", "t2", [])
    call("createTable")
    call("getColumnDescriptors", "t1")
    call("getColumnDescriptors", "nosuch")
    call("getColumnDescriptors")
    call("getTableNames")
    call("isTableEnabled", "t1")
    call("isTableEnabled", "nosuch")
    call("getTableNamesWithIsTableEnabled")
    call("getTableRegions", "t1", shape=True)
    call("getTableRegions", "nosuch")
    call("getRegionInfo", "t1,,99999999999999", shape=True)
    call("getRegionInfo", "a", name="one getRegionInfo before all")
    # Writes of one row.
    call("mutateRow", "t1", "r1", [mutation("f:a", "1"), mutation("f:b", "2"), mutation("g:c", "3")], none)
    call("mutateRow", "t1", "r1", [mutation("f:d", "4", wal=False), mutation("f:", "empty")], none)
    call("mutateRow", "t1", "r1", [mutation("f", "ignored")], none)
    call("mutateRow", "t1", "r1", [mutation("x:a", "1")], none)
    call("mutateRow", "nosuch", "r1", [mutation("f:a", "1")], none)
    call("mutateRow", "t1", "", [mutation("f:a", "1")], none)
    call("mutateRow", "t1", None, [mutation("f:a", "1")], none)
    call("mutateRow", "t1", "r1", [], none)
    call("mutateRow", "t1", "r1", [mutation("f:n")], none)
    call("mutateRow", "t1", "x" * 40000, [mutation("f:a", "1")], none, name="one mutateRow of a long row")
    call("mutateRowTs", "t1", "r2", [mutation("f:a", "old")], I64(100), none)
    call("mutateRowTs", "t1", "r2", [mutation("f:a", "new")], I64(200), none)
    call("mutateRowTs", "t1", "r2", [mutation("f:b", "x")], I64(150), none)
    call("mutateRowTs", "t1", "r2", [mutation("f:b", "x")], I64(-5), none)
    call("mutateRows", "t1", [{1: "r3", 2: [mutation("f:a", "3"), mutation("g:b", "33")]}, {1: "r4", 2: [mutation("f:a", "4")]}], none)
    call("mutateRows", "t1", [{1: "r5", 2: [mutation("f", "family")]}], none)
    call("mutateRows", "t1", [{1: "r5", 2: [mutation("x:y", "5")]}], none)
    call("mutateRows", "t1", [{1: "", 2: [mutation("f:y", "5")]}], none)
    call("mutateRows", "nosuch", [{1: "r5", 2: [mutation("f:y", "5")]}], none)
    call("mutateRows", "t1", [], none)
    call("mutateRowsTs", "t1", [{1: "r6", 2: [mutation("f:a", "6")]}, {1: b"r\xff\x00", 2: [mutation(b"f:\xfe", b"\x00\xff"), mutation("f:z", "z")]}], I64(300), none)
    # Reads.
    call("get", "t1", "r1", "f:a", none)
    call("get", "t1", "r1", "f", none)
    call("get", "t1", "r1", "f:", none)
    call("get", "t1", "r1", "f:nosuch", none)
    call("get", "t1", "r1", "x:a", none)
    call("get", "nosuch", "r1", "f:a", none)
    call("get", "t1", "", "f:a", none)
    call("get", "t1", "r1", "", none)
    call("get", "t1", "r1", None, none)
    call("getVer", "t1", "r2", "f:a", I32(5), none)
    call("getVer", "t1", "r2", "f:a", I32(1), none)
    call("getVer", "t1", "r2", "f", I32(5), none)
    call("getVer", "t1", "r2", "f:a", I32(0), none)
    call("getVer", "t1", "r2", "f:a", I32(-1), none)
    call("getVerTs", "t1", "r2", "f:a", I64(200), I32(5), none)
    call("getVerTs", "t1", "r2", "f:a", I64(201), I32(5), none)
    call("getVerTs", "t1", "r2", "f:a", I64(-1), I32(5), none)
    call("getRow", "t1", "r1", none)
    call("getRow", "t1", "nosuch", none)
    call("getRow", "nosuch", "r1", none)
    call("getRow", "t1", b"r\xff\x00", none)
    call("getRowWithColumns", "t1", "r1", ["f:a", "g"], none)
    call("getRowWithColumns", "t1", "r1", ["f", "f:a"], none)
    call("getRowWithColumns", "t1", "r1", ["f:a", "f"], none)
    call("getRowWithColumns", "t1", "r1", [], none)
    call("getRowWithColumns", "t1", "r1", None, none)
    call("getRowTs", "t1", "r2", I64(150), none)
    call("getRowTs", "t1", "r2", I64(151), none)
    call("getRowWithColumnsTs", "t1", "r2", ["f:a"], I64(200), none)
    call("getRowWithColumnsTs", "t1", "r2", None, I64(200), none)
    call("getRows", "t1", ["r4", "nosuch", "r1", "r4"], none)
    call("getRows", "t1", [], none)
    call("getRows", "t1", [""], none)
    call("getRows", "nosuch", ["r1"], none)
    call("getRowsWithColumns", "t1", ["r1", "r3"], ["g"], none)
    call("getRowsWithColumns", "t1", ["r1"], ["x"], none)
    call("getRowsTs", "t1", ["r2", "r1"], I64(150), none)
    call("getRowsWithColumnsTs", "t1", ["r2", "r6"], ["f:a"], I64(301), none)
    # Scans.
    call("scannerOpenWithScan", "t1", {}, none)
    call("scannerGetList", SCANNER, I32(2))
    call("scannerGet", SCANNER)
    call("scannerGetList", SCANNER, I32(0))
    call("scannerGetList", SCANNER, I32(100))
    call("scannerGetList", SCANNER, I32(100))
    call("scannerGet", SCANNER)
    call("scannerClose", SCANNER)
    call("scannerClose", SCANNER)
    call("scannerGet", SCANNER)
    call("scannerGetList", I32(2000000000), I32(1))
    scans = (
        {1: "r2", 2: "r4"}, {4: ["f:a"]}, {4: ["f"], 8: True}, {6: "PrefixFilter('r1')"}, {6: "ValueFilter(=, 'binary:4')"},
        {9: True}, {9: True, 1: "r3"}, {7: I32(1)}, {3: I64(201)}, {5: I32(1), 10: False}, {6: "KeyOnlyFilter()", 8: True},
        {1: "r2", 2: "r2"}, {4: []}, {4: ["x"]}, {7: I32(2), 8: True},
    )
    for scan in scans:
        call("scannerOpenWithScan", "t1", scan, none)
        call("scannerGetList", SCANNER, I32(50))
        call("scannerClose", SCANNER)
    call("scannerOpenWithScan", "t1", {6: "NoFilter("}, none)
    call("scannerOpenWithScan", "t1", {3: I64(-1)}, none)
    call("scannerOpenWithScan", "nosuch", {}, none)
    call("scannerGetList", SCANNER, I32(1), name="one scannerGetList of a missing table")
    opens = (
        ("scannerOpen", "t1", "r3", ["f"], none), ("scannerOpen", "t1", "r3", None, none), ("scannerOpen", "t1", "r3", [], none),
        ("scannerOpenTs", "t1", "", ["f:a"], I64(250), none), ("scannerOpenWithStop", "t1", "r2", "r4", ["f"], none),
        ("scannerOpenWithStopTs", "t1", "r1", "r4", ["f"], I64(151), none), ("scannerOpenWithPrefix", "t1", "r", ["f:a"], none),
        ("scannerOpenWithPrefix", "t1", "r1", [], none), ("scannerOpenWithPrefix", "t1", "r1", None, none),
    )
    for arguments in opens:
        call(*arguments)
        call("scannerGetList", SCANNER, I32(50))
    # Counters and appends.
    call("atomicIncrement", "t1", "c", "f:n", I64(5))
    call("atomicIncrement", "t1", "c", "f:n", I64(-7))
    call("atomicIncrement", "t1", "c", "f", I64(1))
    call("atomicIncrement", "t1", "c", "x:n", I64(1))
    call("atomicIncrement", "t1", "r1", "f:a", I64(1))
    call("atomicIncrement", "t1", "", "f:a", I64(1))
    call("increment", {1: "t1", 2: "c", 3: "f:n", 4: I64(10)})
    call("increment", {1: "t1", 2: "", 3: "f:n", 4: I64(10)})
    call("increment", {1: "t1", 2: "c", 3: "f", 4: I64(10)})
    call("increment")
    call("incrementRows", [{1: "t1", 2: "c", 3: "f:n", 4: I64(1)}, {1: "t1", 2: "c2", 3: "f:n", 4: I64(2)}])
    call("getRow", "t1", "c", none)
    call("append", {1: "t1", 2: "a", 3: ["f:x", "f:y"], 4: ["one", "two"]})
    call("append", {1: "t1", 2: "a", 3: ["f:x"], 4: ["+"]})
    call("append", {1: "t1", 2: "a", 3: ["f:x"], 4: []})
    call("append", {1: "t1", 2: "a", 3: ["f"], 4: ["+"]})
    call("append", {1: "t1", 2: "a", 3: ["x:y"], 4: ["+"]})
    call("append", {1: "t1", 2: "", 3: ["f:x"], 4: ["+"]})
    # Conditions.
    call("checkAndPut", "t1", "k", "f:a", None, None, mutation("f:a", "1"), none)
    call("checkAndPut", "t1", "k", "f:a", None, None, mutation("f:a", "2"), none)
    call("checkAndPut", "t1", "k", "f:a", None, "1", mutation("f:a", "3"), none)
    call("checkAndPut", "t1", "k", "f:a", None, "1", mutation("f:a", "4"), none)
    call("checkAndPut", "t1", "k", "f:b", None, "", mutation("f:b", "5"), none)
    call("checkAndPut", "t1", "k", "f", None, "1", mutation("f:a", "3"), none)
    call("checkAndPut", "t1", "k", "f:a", None, "1", mutation("f", "3"), none)
    call("checkAndPut", "t1", "", "f:a", None, "1", mutation("f:a", "3"), none)
    call("checkAndPut", "t1", "k", "x:a", None, "1", mutation("f:a", "3"), none)
    call("getRow", "t1", "k", none)
    # Deletes.
    call("mutateRow", "t1", "r1", [mutation("f:b", delete=True), mutation("f:e", "5")], none)
    call("getRow", "t1", "r1", none)
    call("mutateRow", "t1", "r1", [mutation("f", delete=True)], none)
    call("getRow", "t1", "r1", none)
    call("deleteAll", "t1", "r1", "g:c", none)
    call("getRow", "t1", "r1", none)
    call("deleteAllTs", "t1", "r2", "f:a", I64(100), none)
    call("getVer", "t1", "r2", "f:a", I32(5), none)
    call("deleteAllTs", "t1", "r2", "f", I64(150), none)
    call("getRow", "t1", "r2", none)
    call("deleteAllTs", "t1", "r2", "f", I64(-1), none)
    call("deleteAll", "t1", "r2", "x:a", none)
    call("deleteAll", "nosuch", "r2", "f:a", none)
    call("deleteAllRowTs", "t1", "r2", I64(199), none)
    call("getRow", "t1", "r2", none)
    call("deleteAllRow", "t1", "r2", none)
    call("getRow", "t1", "r2", none)
    call("deleteAllRow", "t1", "", none)
    call("mutateRows", "t1", [{1: "r3", 2: [mutation("f:a", delete=True), mutation("g:b", "new")]}], none)
    call("getRow", "t1", "r3", none)
    # Unknown and unexpected fields are skipped.
    call("getRow", "t1", "r3", none, I16(7), Byte(1), [{1: {2: Map({"a": [True]})}}])
    call("getRow", "t1", "r3", "not a map")
    call("getRow", I64(5), "r3")
    # Administration.
    call("compact", "t1")
    call("majorCompact", "t1")
    call("compact", "nosuch")
    call("deleteTable", "t1")
    call("deleteTable", "nosuch")
    call("disableTable", "t1")
    call("disableTable", "t1")
    call("disableTable", "nosuch")
    call("isTableEnabled", "t1")
    call("get", "t1", "r1", "f:a", none, name="one get of a disabled table")
    call("enableTable", "t1")
    call("enableTable", "t1")
    call("enableTable", "nosuch")
    call("disableTable", "t1")
    call("deleteTable", "t1")
    call("getTableNames")
    return call.all


def column(name, qualifier=None, timestamp=None):
    fields = {1: name, 2: qualifier, 3: timestamp}
    return {number: field for number, field in fields.items() if field is not None}


def cell(name, qualifier, value, timestamp=None):
    fields = {1: name, 2: qualifier, 3: value, 4: timestamp}
    return {number: field for number, field in fields.items() if field is not None}


def table_name(qualifier, namespace=None):
    return {2: qualifier} if namespace is None else {1: namespace, 2: qualifier}


def thrift2():
    call = Calls("two")
    t = table_name("u1")
    call("getThriftServerType")
    call("getClusterId", shape=True)
    call("noSuchMethod")
    # Tables and namespaces.
    call("createNamespace", {1: "space", 2: Map({"k": "v"})})
    call("createNamespace", {1: "space"})
    call("createNamespace", {1: "bad name"})
    call("getNamespaceDescriptor", "space")
    call("getNamespaceDescriptor", "nosuch")
    call("modifyNamespace", {1: "space", 2: Map({"k": "w"})})
    call("modifyNamespace", {1: "nosuch"})
    call("listNamespaces")
    call("listNamespaceDescriptors")
    call("createTable", {1: t, 2: [{1: "f", 10: I32(3)}, {1: "g", 6: I32(1), 5: I32(2), 14: False, 20: True, 13: I32(600), 8: I32(4)}]})
    call("createTable", {1: t, 2: [{1: "f"}]})
    call("createTable", {1: table_name("u2")})
    call("createTable", {1: table_name("s1", "space"), 2: [{1: "f", 3: Map({"a.b": "c"})}], 3: Map({"X": "y"}), 4: I32(3)}, ["b", "m"])
    call("createTable", {1: table_name("x", "nosuch"), 2: [{1: "f"}]})
    call("createTable", {1: table_name("bad name"), 2: [{1: "f"}]})
    call("createTable", {1: table_name("u3"), 2: [{1: "f"}]}, ["b", "b"])
    call("tableExists", t)
    call("tableExists", table_name("nosuch"))
    call("isTableEnabled", t)
    call("isTableEnabled", table_name("nosuch"))
    call("isTableDisabled", t)
    call("isTableDisabled", table_name("nosuch"))
    call("isTableAvailable", t)
    call("isTableAvailable", table_name("nosuch"))
    call("isTableAvailableWithSplit", table_name("s1", "space"), ["b", "m"])
    call("isTableAvailableWithSplit", table_name("s1", "space"), ["b"])
    call("getTableDescriptor", t)
    call("getTableDescriptor", table_name("s1", "space"))
    call("getTableDescriptor", table_name("nosuch"))
    call("getTableDescriptors", [t, table_name("nosuch")])
    call("getTableDescriptorsByPattern", "u.*", False)
    call("getTableDescriptorsByNamespace", "space")
    call("getTableDescriptorsByNamespace", "nosuch")
    call("getTableNamesByPattern", "u.*", False)
    call("getTableNamesByPattern", None, False)
    call("getTableNamesByPattern", ".*", True)
    call("getTableNamesByNamespace", "space")
    call("getTableNamesByNamespace", "nosuch")
    call("getRegionLocation", "space:s1", "c", False, shape=True)
    call("getRegionLocation", "space:s1", "z", True, shape=True)
    call("getRegionLocation", "nosuch", "z", False)
    call("getAllRegionLocations", "space:s1", shape=True)
    call("getAllRegionLocations", "nosuch")
    # Writes.
    call("put", "u1", {1: "r1", 2: [cell("f", "a", "1"), cell("f", "b", "2", I64(20)), cell("g", "", "3")], 3: I64(10)})
    call("put", "u1", {1: "r1", 2: [cell("f", "a", "1b")], 3: I64(11), 6: I32(1)})
    call("put", "u1", {1: "r1", 2: []})
    call("put", "u1", {1: "", 2: [cell("f", "a", "1")]})
    call("put", "u1", {1: "r1", 2: [cell("x", "a", "1")]})
    call("put", "nosuch", {1: "r1", 2: [cell("f", "a", "1")]})
    call("put", "u1", {1: "r1", 2: [cell("f", "a", "1")], 3: I64(-1)})
    call("putMultiple", "u1", [{1: f"m{number}", 2: [cell("f", "a", str(number), I64(5))]} for number in range(5)])
    call("putMultiple", "u1", [])
    call("putMultiple", "u1", [{1: "m", 2: [cell("x", "a", "1")]}])
    # Reads.
    call("get", "u1", {1: "r1"})
    call("get", "u1", {1: "nosuch"})
    call("get", "u1", {1: ""})
    call("get", "nosuch", {1: "r1"})
    call("get", "u1", {1: "r1", 2: [column("f")]})
    call("get", "u1", {1: "r1", 2: [column("f", "b"), column("g", "")]})
    call("get", "u1", {1: "r1", 2: [column("x")]})
    call("get", "u1", {1: "r1", 5: I32(3)})
    call("get", "u1", {1: "r1", 5: I32(0)})
    call("get", "u1", {1: "r1", 3: I64(10)})
    call("get", "u1", {1: "r1", 4: {1: I64(10), 2: I64(11)}, 5: I32(5)})
    call("get", "u1", {1: "r1", 3: I64(11), 4: {1: I64(0), 2: I64(11)}})
    call("get", "u1", {1: "r1", 4: {1: I64(20), 2: I64(11)}})
    call("get", "u1", {1: "r1", 6: "QualifierFilter(=, 'binary:b')"})
    call("get", "u1", {1: "r1", 6: "Nope("})
    call("get", "u1", {1: "r1", 12: I32(1)})
    call("get", "u1", {1: "r1", 12: I32(1), 13: I32(1)})
    call("get", "u1", {1: "r1", 11: False})
    call("get", "u1", {1: "r1", 14: True})
    call("get", "u1", {1: "r1", 15: b"\n,org.apache.hadoop.hbase.filter.KeyOnlyFilter\x12\x02\x08\x00"})
    call("get", "u1", {1: "r1", 15: b"garbage"})
    call("exists", "u1", {1: "r1"})
    call("exists", "u1", {1: "r1", 2: [column("f", "zz")]})
    call("exists", "nosuch", {1: "r1"})
    call("existsAll", "u1", [{1: "r1"}, {1: "nosuch"}, {1: "m1"}])
    call("existsAll", "u1", [])
    call("getMultiple", "u1", [{1: "m2"}, {1: "nosuch"}, {1: "r1", 2: [column("g")]}])
    call("getMultiple", "u1", [])
    # Scans.
    call("openScanner", "u1", {})
    call("getScannerRows", SCANNER, I32(2))
    call("getScannerRows", SCANNER)
    call("getScannerRows", SCANNER, I32(100))
    call("getScannerRows", SCANNER, I32(100))
    call("closeScanner", SCANNER)
    call("getScannerRows", SCANNER, I32(1))
    call("closeScanner", SCANNER)
    scans = (
        {1: "m1", 2: "m3"}, {3: [column("f", "a")]}, {5: I32(3), 1: "r"}, {6: {1: I64(5), 2: I64(6)}}, {7: "PrefixFilter('m')"},
        {8: I32(1)}, {11: True}, {11: True, 1: "m2"}, {12: False, 4: I32(1)}, {13: Map({"f": {1: I64(0), 2: I64(6)}})}, {14: I32(2)},
        {15: I32(2)}, {9: Map({"_raw_": b"\xff"})}, {3: [column("x")]},
    )
    for scan in scans:
        call("getScannerResults", "u1", scan, I32(50))
    call("getScannerResults", "u1", {})
    call("getScannerResults", "u1", {7: "Nope("}, I32(5))
    call("getScannerResults", "u1", {5: I32(0)}, I32(5))
    call("getScannerResults", "nosuch", {}, I32(5))
    call("openScanner", "nosuch", {})
    call("getScannerRows", SCANNER, I32(1), name="two getScannerRows of a missing table")
    # Counters and appends.
    call("increment", "u1", {1: "c", 2: [{1: "f", 2: "n"}, {1: "f", 2: "k", 3: I64(5)}]})
    call("increment", "u1", {1: "c", 2: [{1: "f", 2: "n", 3: I64(-3)}], 7: False})
    call("increment", "u1", {1: "c", 2: []})
    call("increment", "u1", {1: "c", 2: [{1: "x", 2: "n"}]})
    call("increment", "u1", {1: "r1", 2: [{1: "f", 2: "a"}]})
    call("append", "u1", {1: "a", 2: [cell("f", "x", "1"), cell("f", "y", "2")]})
    call("append", "u1", {1: "a", 2: [cell("f", "x", "+")], 6: False})
    call("append", "u1", {1: "a", 2: []})
    call("append", "u1", {1: "a", 2: [cell("x", "x", "1")]})
    call("get", "u1", {1: "a"})
    # Conditions.
    put = {1: "k", 2: [cell("f", "a", "1")]}
    call("checkAndPut", "u1", "k", "f", "a", None, put)
    call("checkAndPut", "u1", "k", "f", "a", None, put)
    call("checkAndPut", "u1", "k", "f", "a", "1", {1: "k", 2: [cell("f", "a", "2")]})
    call("checkAndPut", "u1", "k", "f", "a", "1", {1: "other", 2: [cell("f", "a", "2")]})
    call("checkAndPut", "u1", "k", "x", "a", "1", put)
    call("checkAndMutate", "u1", "k", "f", "a", I32(4), "1", {1: "k", 2: [{1: {1: "k", 2: [cell("f", "b", "3")]}}, {2: {1: "k", 2: [column("f", "zz")]}}]})
    call("checkAndMutate", "u1", "k", "f", "a", I32(0), "1", {1: "k", 2: [{1: {1: "k", 2: [cell("f", "c", "3")]}}]})
    call("checkAndMutate", "u1", "k", "f", "new", I32(2), None, {1: "k", 2: [{1: {1: "k", 2: [cell("f", "d", "3")]}}]})
    call("checkAndMutate", "u1", "k", "f", "a", I32(2), "2", {1: "k", 2: []})
    call("checkAndDelete", "u1", "k", "f", "a", "nope", {1: "k"})
    call("checkAndDelete", "u1", "k", "f", "a", "2", {1: "k", 2: [column("f", "a")]})
    call("get", "u1", {1: "k"}, shape=True)
    # Deletes.
    call("put", "u1", {1: "d", 2: [cell("f", "a", "1", I64(1)), cell("f", "a", "2", I64(2)), cell("f", "a", "3", I64(3)), cell("f", "b", "1", I64(1)), cell("f", "b", "2", I64(2)), cell("g", "c", "9", I64(9))]})
    call("deleteSingle", "u1", {1: "d", 2: [column("f", "a")], 4: I32(0)})
    call("get", "u1", {1: "d", 5: I32(5)})
    call("deleteSingle", "u1", {1: "d", 2: [column("f", "a", I64(1))], 4: I32(0)})
    call("get", "u1", {1: "d", 5: I32(5)})
    call("deleteSingle", "u1", {1: "d", 2: [column("f", "b")]})
    call("get", "u1", {1: "d", 5: I32(5)})
    call("deleteSingle", "u1", {1: "d", 2: [column("f", None, I64(2))], 4: I32(3)})
    call("deleteSingle", "u1", {1: "d", 2: [column("f")], 4: I32(3)})
    call("get", "u1", {1: "d", 5: I32(5)})
    call("deleteSingle", "u1", {1: "d", 2: [column("g")], 4: I32(2)})
    call("get", "u1", {1: "d", 5: I32(5)})
    call("deleteSingle", "u1", {1: "m0", 3: I64(4)})
    call("get", "u1", {1: "m0"})
    call("deleteSingle", "u1", {1: "m0"})
    call("get", "u1", {1: "m0"})
    call("deleteSingle", "u1", {1: "m0", 2: [column("x", "a")]})
    call("deleteSingle", "u1", {1: ""})
    call("deleteMultiple", "u1", [{1: "m1"}, {1: "m2", 2: [column("f", "a")]}])
    call("deleteMultiple", "u1", [])
    call("existsAll", "u1", [{1: "m1"}, {1: "m2"}, {1: "m3"}])
    call("mutateRow", "u1", {1: "mr", 2: [{1: {1: "mr", 2: [cell("f", "a", "1", I64(1)), cell("f", "b", "1", I64(1))]}}, {2: {1: "mr", 2: [column("f", "a")]}}]})
    call("get", "u1", {1: "mr"})
    call("mutateRow", "u1", {1: "mr", 2: [{1: {1: "other", 2: [cell("f", "a", "1")]}}]})
    call("mutateRow", "u1", {1: "mr", 2: []})
    call("mutateRow", "u1", {1: "mr", 2: [{1: {1: "mr", 2: [cell("x", "a", "1")]}}]})
    # Changes of tables.
    call("addColumnFamily", t, {1: "h", 10: I32(7)})
    call("addColumnFamily", t, {1: "h"})
    call("modifyColumnFamily", t, {1: "h", 10: I32(8), 9: I32(1)})
    call("modifyColumnFamily", t, {1: "nosuch"})
    call("getTableDescriptor", t)
    call("deleteColumnFamily", t, "h")
    call("deleteColumnFamily", t, "nosuch")
    call("modifyTable", {1: t, 2: [{1: "f", 10: I32(2)}], 3: Map({"READONLY": "false"})})
    call("modifyTable", {1: table_name("nosuch"), 2: [{1: "f"}]})
    call("getTableDescriptor", t)
    call("truncateTable", t, True)
    call("disableTable", t)
    call("disableTable", t)
    call("isTableDisabled", t)
    call("isTableAvailable", t)
    call("get", "u1", {1: "r1"}, name="two get of a disabled table")
    call("truncateTable", t, True)
    call("isTableEnabled", t)
    call("enableTable", t)
    call("get", "u1", {1: "r1"})
    call("deleteTable", t)
    call("disableTable", t)
    call("deleteTable", t)
    call("deleteTable", t)
    call("enableTable", t)
    call("deleteNamespace", "space")
    call("disableTable", table_name("s1", "space"))
    call("deleteTable", table_name("s1", "space"))
    call("deleteNamespace", "space")
    call("deleteNamespace", "nosuch")
    call("listNamespaces")
    return call.all
