"""Metrics of a region server, from /jmx in HBase's form."""
import json
import time
import urllib.request

# HBase refreshes its beans at most this often (metrics2's period).
FRESH_AFTER_S = 10.5


def figures(server, sub="Server"):
    """The current metrics of one bean."""
    if server.name == "hbase":
        time.sleep(FRESH_AFTER_S)
    page = f"http://127.0.0.1:{server.endpoint.pages}/jmx?qry=Hadoop:service=HBase,name=RegionServer,sub={sub}"
    with urllib.request.urlopen(page, timeout=30) as answer:
        return json.load(answer)["beans"][0]
