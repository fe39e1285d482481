"""The beans of a server on /jmx, and the names of their attributes without tables, regions and
users."""
import json
import re
import urllib.request

HBASE = "Hadoop:service=HBase,name="


def shown(host, port, query=None):
    """The beans of a port, or only those that match a query."""
    page = f"http://{host}:{port}/jmx" + (f"?qry={query}" if query else "")
    with urllib.request.urlopen(page, timeout=60) as answer:
        return json.load(answer)["beans"]


def general(name):
    """The name of an attribute without its table, region, family or user."""
    of = re.match(r"(Namespace|User)_(.*?)_metric_(.*)", name)
    if of:
        kinds = (("_region_.*_store_", "R_cf_"), ("_region_", "R_"), ("_columnfamily_", "T_cf_"), ("", "T_"))
        prefix = "U_" if of[1] == "User" else next(prefix for part, prefix in kinds if re.search(part, of[2]))
        return prefix + of[3]
    return re.sub(r"^.*\.(append(?:Count|Size))$", r"T.\1", name)


def kind(value):
    """The kind of an attribute's value, as JSON shows it."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, float):
        return "fraction"
    return "whole" if isinstance(value, int) and not isinstance(value, bool) else "other"
