"""Figures that a region server tells on its pages, in HBase's form: /jmx."""
import json
import time
import urllib.request

# HBase makes its beans anew no more often than this (metrics2's period).
FRESH_AFTER_S = 10.5


def figures(server, sub="Server"):
    """The figures of this moment, of one bean."""
    if server.name == "hbase":
        time.sleep(FRESH_AFTER_S)
    page = f"http://127.0.0.1:{server.endpoint.pages}/jmx?qry=Hadoop:service=HBase,name=RegionServer,sub={sub}"
    with urllib.request.urlopen(page, timeout=30) as answer:
        return json.load(answer)["beans"][0]
