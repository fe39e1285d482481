"""A program that uses hbase-driver: prints a line for each step. Usage: program.py ZOOKEEPER_QUORUM

hbase-driver writes a wrong length for every request above 127 bytes: requests with filters, long
values and conditions.
"""
import sys

from hbasedriver.client.client import Client
from hbasedriver.common.table_name import TableName
from hbasedriver.filter import PrefixFilter
from hbasedriver.operations.batch import BatchGet
from hbasedriver.operations.column_family_builder import ColumnFamilyDescriptorBuilder
from hbasedriver.operations.delete import Delete
from hbasedriver.operations.get import Get
from hbasedriver.operations.increment import CheckAndPut
from hbasedriver.operations.put import Put
from hbasedriver.operations.scan import Scan

TABLE = b"driver"
LONG = 40_000


def shown(value):
    """A value in short form."""
    if isinstance(value, bytes):
        return repr(value) if len(value) <= 40 else f"{value[:8]!r}... of {len(value)} bytes"
    return repr(value)


def row(result):
    """A row's columns."""
    if result is None:
        return "nothing"
    cells = sorted((family, qualifier, value) for family, columns in result.kv.items() for qualifier, value in columns.items())
    return f"{shown(result.rowkey)} " + " ".join(f"{f.decode()}:{q.decode()}={shown(v)}" for f, q, v in cells)


def step(name, work):
    """Runs a step and prints its result."""
    try:
        result = work()
    except Exception as error:  # pylint: disable=broad-except
        result = f"!{type(error).__name__}"
    for line in result if isinstance(result, list) else [result]:
        print(f"{name}: {line}", flush=True)


def put(key, **columns):
    """A put of columns of the family f."""
    made = Put(key)
    for qualifier, value in columns.items():
        made.add_column(b"f", qualifier.encode(), value)
    return made


def check(key, qualifier, expected, change, operator="EQUAL"):
    """A conditional put."""
    made = CheckAndPut(key)
    made.set_check(b"f", qualifier, expected)
    made.set_put(change)
    made.set_compare_operator(operator)
    return made


def rows(table, scan_filter=None):
    """The rows of a scan. It has a start row because without one the driver does not find the
    table."""
    scan = Scan(b"a")
    if scan_filter is not None:
        scan.set_filter(scan_filter)
    with table.scan(scan) as scanner:
        return [row(result) for result in scanner]


def in_batch(table):
    """Puts and a delete in a batch."""
    with table.batch() as batch:
        for number in range(5):
            batch.put(b"batch%d" % number, {b"f:q": b"v%d" % number, b"f:long": b"x" * 50 * number})
        batch.delete(b"other")
    return "done"


def got_in_batch(table, keys):
    """Rows that are requested in one batch."""
    gets = BatchGet(keys)
    gets.add_family(b"f")
    return [row(found) for found in table.batch_get(gets).values()]


def main():
    """The steps."""
    client = Client({"hbase.zookeeper.quorum": sys.argv[1]})
    admin = client.get_admin()
    name = TableName.value_of(b"default", TABLE)
    step("create", lambda: admin.create_table(name, [ColumnFamilyDescriptorBuilder(b"f").build()]))
    step("exists", lambda: admin.table_exists(name))
    table = client.get_table(b"default", TABLE)
    step("put", lambda: table.put(put(b"row1", a=b"1", b=b"2")))
    step("put a long value", lambda: table.put(put(b"row2", long=b"y" * LONG)))
    step("put of another row", lambda: table.put(put(b"other", a=b"1")))
    step("get", lambda: row(table.get(Get(b"row1").add_family(b"f"))))
    step("get a column", lambda: row(table.get(Get(b"row1").add_column(b"f", b"b"))))
    step("get a long value", lambda: row(table.get(Get(b"row2").add_family(b"f"))))
    step("get of a long row key", lambda: row(table.get(Get(b"k" * 300).add_family(b"f"))))
    step("get nothing", lambda: row(table.get(Get(b"none").add_family(b"f"))))
    step("batch", lambda: in_batch(table))
    step("batch get", lambda: got_in_batch(table, [b"batch1", b"batch4", b"other"]))
    step("scan", lambda: rows(table))
    step("scan with a filter", lambda: rows(table, PrefixFilter(b"batch")))
    step("scan with a long filter", lambda: rows(table, PrefixFilter(b"row1" + b"z" * 500)))
    step("check that holds", lambda: table.check_and_put(check(b"row1", b"a", b"1", put(b"row1", a=b"3"))))
    step("check that fails", lambda: table.check_and_put(check(b"row1", b"a", b"1", put(b"row1", a=b"4"))))
    step("check of a long value", lambda: table.check_and_put(
        check(b"row2", b"long", b"y" * LONG, put(b"row2", long=b"z" * 200))))
    step("check that is not equal", lambda: table.check_and_put(
        check(b"row1", b"b", b"7", put(b"row1", c=b"5"), "NOT_EQUAL")))
    step("delete", lambda: table.delete(Delete(b"batch0").add_family(b"f")))
    step("after all", lambda: rows(table))
    step("drop", lambda: (admin.disable_table(name), admin.delete_table(name))[1])
    client.close()


if __name__ == "__main__":
    main()
