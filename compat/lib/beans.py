"""What a server shows on /jmx: its beans, and the names of their attributes without whom they are about."""
import json
import re
import urllib.request

HBASE = "Hadoop:service=HBase,name="


def shown(host, port, query=None):
    """The beans behind a port, those of a query alone if there is one."""
    page = f"http://{host}:{port}/jmx" + (f"?qry={query}" if query else "")
    with urllib.request.urlopen(page, timeout=60) as answer:
        return json.load(answer)["beans"]


def general(name):
    """The name of an attribute without the table, region, family or user that it is about."""
    of = re.match(r"(Namespace|User)_(.*?)_metric_(.*)", name)
    if of:
        kinds = (("_region_.*_store_", "R_cf_"), ("_region_", "R_"), ("_columnfamily_", "T_cf_"), ("", "T_"))
        prefix = "U_" if of[1] == "User" else next(prefix for part, prefix in kinds if re.search(part, of[2]))
        return prefix + of[3]
    return re.sub(r"^.*\.(append(?:Count|Size))$", r"T.\1", name)


def kind(value):
    """What kind of value an attribute has, as far as JSON tells."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, float):
        return "fraction"
    return "whole" if isinstance(value, int) and not isinstance(value, bool) else "other"
