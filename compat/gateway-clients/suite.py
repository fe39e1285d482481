"""Which of HBase's tests run, and which do not, with the reason."""
import glob
import os
import re
import zipfile

PACKAGE = "org/apache/hadoop/hbase/"

# The test classes that run, with the methods that do not.
_HANDLER = {
    "testMetrics": "metrics inside HBase's server",
    "testMetricsPrecision": "metrics inside HBase's server",
    "testMetricsWithException": "needs a coprocessor in Java on the region server",
    "testFilterRegistration": "a table of classes inside HBase's server",
    "testSlowLogResponses": "needs another setting of HBase's region servers, and calls that Grampus does not support",
    "testAttribute": "no request: HBase's conversion of structs",
    "testDurability": "no request: HBase's conversion of structs",
    "testConsistency": "no request: HBase's conversion of structs",
}
CLASSES = {
    "rest.TestDeleteRow": {},
    "rest.TestGetAndPutResource": {
        "testMetrics": "metrics inside HBase's server",
    },
    "rest.TestGzipFilter": {},
    "rest.TestMultiRowResource": {},
    "rest.TestNamespacesInstanceResource": {},
    "rest.TestNamespacesResource": {},
    "rest.TestScannerResource": {},
    "rest.TestScannersWithFilters": {},
    "rest.TestSchemaResource": {},
    "rest.TestSecurityHeadersFilter": {
        "testHstsAndCspSettings": "settings of HBase's HTTP server that Grampus does not have",
    },
    "rest.TestStatusResource": {},
    "rest.TestTableResource": {},
    "rest.TestTableScan": {
        "testCustomFilter": "needs a filter in Java in the gateway",
        "testNegativeCustomFilter": "needs a filter in Java in the gateway",
    },
    "rest.TestVersionResource": {},
    "rest.client.TestRemoteTable": {},
    "thrift.TestThriftHttpServer": {
        "testExceptionThrownWhenMisConfigured": "the start of HBase's server with wrong settings",
    },
    "thrift.TestThriftServer": {
        "testAll": "calls the methods doTest..., each of which runs as a test here",
        "doTestFilterRegistration": "a table of classes inside HBase's server",
        "doTestIncrements": "the queue of unacknowledged increments inside HBase's server",
        "doTestThriftMetrics": "metrics inside HBase's server",
        "testMetricsWithException": "needs a coprocessor in Java on the region server",
    },
    "thrift2.TestThrift2HttpServer": {
        "testExceptionThrownWhenMisConfigured": "the start of HBase's server with wrong settings",
    },
    "thrift2.TestThriftConnection": {},
    "thrift2.TestThriftHBaseServiceHandler": _HANDLER,
    "thrift2.TestThriftHBaseServiceHandlerWithReadOnly": {},
}

# The other classes share a JVM. A static field of the superclass of this one records that another
# test has created its table.
OWN_JVM = ["thrift2.TestThrift2HttpServer"]

_NO_SERVER = "needs no server: classes of HBase's client or server"
_UNSUPPORTED = "needs a server with TLS, Kerberos or visibility labels, which Grampus does not support"
EXCLUDED = {
    "rest.TestGZIPResponseWrapper": _NO_SERVER,
    "rest.TestRESTServerSSL": _UNSUPPORTED,
    "rest.TestResourceFilter": "needs a filter in Java in the gateway",
    "rest.TestScannersWithLabels": _UNSUPPORTED,
    "rest.TestSecureRESTServer": _UNSUPPORTED,
    "rest.client.TestRemoteAdminRetries": _NO_SERVER,
    "rest.client.TestRemoteHTableRetries": _NO_SERVER,
    "rest.client.TestXmlParsing": _NO_SERVER,
    "rest.model.Test*": _NO_SERVER,
    "thrift.TestBindExceptionHandling": "the choice of a port by HBase's own server",
    "thrift.TestCallQueue": _NO_SERVER,
    "thrift.TestThriftHttpServerSSL": _UNSUPPORTED,
    "thrift.TestThriftServerCmdLine": "the command line of HBase's own server (compat/thrift/run: all transports and protocols)",
    "thrift.TestThriftSpnegoHttp*": _UNSUPPORTED,
    "thrift2.TestThrift2ServerCmdLine": "the command line of HBase's own server (compat/thrift/run: all transports and protocols)",
    "thrift2.TestThriftHBaseServiceHandlerWithLabels": _UNSUPPORTED,
}


def groups(classes):
    """The classes that run in each JVM."""
    shared = [name for name in classes if name not in OWN_JVM]
    return [group for group in (shared, *([name] for name in classes if name in OWN_JVM)) if group]


def unlisted(libraries):
    """The test classes of the jars that are listed neither above nor below."""
    listed = re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in {**CLASSES, **EXCLUDED}))
    return sorted(name for name in _published(libraries) if not listed.fullmatch(name))


def _published(libraries):
    """All test classes of hbase-rest and hbase-thrift."""
    for module in ("rest", "thrift"):
        for path in glob.glob(os.path.join(libraries, f"hbase-{module}-*-tests.jar")):
            for name in zipfile.ZipFile(path).namelist():
                match = re.fullmatch(PACKAGE + r"([\w/]*/Test\w+)\.class", name)
                if match:
                    yield match.group(1).replace("/", ".")
