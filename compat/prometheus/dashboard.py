"""The Grafana dashboard: its panels in short form, and the JSON that Grafana imports
(docs/grafana.json)."""
import json
import os

from javatools import COMPAT

FILE = os.path.normpath(os.path.join(COMPAT, "..", "docs", "grafana.json"))
SERVERS = '{instance=~"$instance"}'
# In Grafana's grid of 24 columns.
PANEL_WIDTH, PANEL_HEIGHT = 8, 8


def rate(*named):
    """Rates per second of counters, each with its legend."""
    return [(f"sum(rate({metric}{SERVERS}[1m]))", word) for metric, word in named]


def now(*named):
    """Sums of current values over the servers."""
    return [(f"sum({metric}{SERVERS})", word) for metric, word in named]


def worst(*named):
    """The maximum over the servers."""
    return [(f"max({metric}{SERVERS})", word) for metric, word in named]


def times(summary, *shares):
    """Quantiles of a summary: the maximum over the servers."""
    chosen = SERVERS.replace("}", ',quantile="%s"}')
    return [(f"max({summary}{chosen % share})", f"{float(share):.5g}".replace("0.", "p")) for share in shares]


# A row's title, and its panels: title, Grafana unit, queries with legends.
ROWS = (
    ("Requests", (
        ("Calls", "reqps", rate(("server_rpc_get_request_count", "Get"), ("server_rpc_scan_request_count", "Scan"),
                                ("server_rpc_multi_request_count", "Multi"), ("server_rpc_mutate_request_count", "Mutate"))),
        ("Rows", "rowsps", rate(("server_read_request_count", "read"), ("server_write_request_count", "written"),
                                ("server_filtered_read_request_count", "filtered out"))),
        ("Failed calls", "reqps", rate(("region_server_exceptions", "all"),
                                       ("region_server_exceptions_region_too_busy_exception", "region too busy"),
                                       ("region_server_exceptions_call_queue_too_big", "call queue full"),
                                       ("region_server_exceptions_not_serving_region_exception", "region not served here"),
                                       ("region_server_exceptions_rpc_throttling", "quota exceeded"))),
        ("Get", "s", times("grampus_server_get_seconds", "0.5", "0.99", "0.999", "1")),
        ("Batched puts", "s", times("grampus_server_put_batch_seconds", "0.5", "0.99", "0.999", "1")),
        ("Scan calls", "s", times("grampus_server_scan_time_seconds", "0.5", "0.99", "0.999", "1")),
        ("All calls", "s", times("grampus_region_server_process_call_time_seconds", "0.5", "0.99", "0.999", "1")),
        ("Queue time", "s", times("grampus_region_server_queue_call_time_seconds", "0.5", "0.99", "0.999", "1")),
        ("Network", "Bps", rate(("region_server_received_bytes", "received"), ("region_server_sent_bytes", "sent"))),
    )),
    ("Memory and cache", (
        ("Memory", "bytes", now(("grampus_limit", "limit"), ("memory_block_cache_size", "cache"), ("memory_mem_store_size", "memstores"),
                                ("grampus_request_size", "requests"), ("grampus_response_size", "responses"))),
        ("Block lookups", "ops", rate(("server_block_cache_hit_count", "cached"), ("server_block_cache_miss_count", "read from disk"))),
        ("Cache hit ratio", "percentunit", [(
            f"sum(rate(server_block_cache_hit_count{SERVERS}[1m])) / (sum(rate(server_block_cache_hit_count{SERVERS}[1m])) + "
            f"sum(rate(server_block_cache_miss_count{SERVERS}[1m])))", "hit ratio")]),
    )),
    ("Log and files", (
        ("Log sync time", "s", times("grampus_wal_sync_time_seconds", "0.5", "0.99", "1")),
        ("Log writes", "Bps", rate(("wal_written_bytes", "bytes"))),
        ("Log edits", "ops", rate(("wal_append_count", "appended"))),
        ("Flushes and compactions", "Bps", rate(("server_flushed_output_bytes", "flushed"), ("server_compacted_input_bytes", "read by compactions"),
                                                ("server_compacted_output_bytes", "written by compactions"))),
        ("Queued", "short", now(("server_flush_queue_length", "flushes"), ("server_compaction_queue_length", "compactions"))),
        ("Files", "short", [*now(("server_store_file_count", "files")), *worst(("server_max_store_file_count", "maximum of a store"))]),
    )),
    ("Servers", (
        ("Regions", "short", now(("server_region_count", "served"), ("assignment_manager_rit_count", "in transition"))),
        ("Size", "bytes", now(("server_store_file_size", "files"), ("server_mem_store_size", "cells in memstores"))),
        ("Connections", "short", [*now(("region_server_num_open_connections", "open")),
                                  *rate(("grampus_connections_turned_away", "rejected per second"),
                                        ("grampus_connections_stalled", "stalled per second"))]),
    )),
)


def queries():
    """The queries of each panel: its title and the expression, for all servers."""
    for _, panels in ROWS:
        for title, _, targets in panels:
            for expression, _ in targets:
                yield title, expression.replace("$instance", ".*")


def text():
    """The dashboard as Grafana imports it."""
    return json.dumps(dashboard(), indent=1) + "\n"


def dashboard():
    panels, line = [], 0
    for title, row in ROWS:
        panels.append({"type": "row", "title": title, "collapsed": False, "panels": [],
                       "id": len(panels) + 1, "gridPos": {"h": 1, "w": 24, "x": 0, "y": line}})
        line += 1
        per_line = 24 // PANEL_WIDTH
        for at, one in enumerate(row):
            place = {"h": PANEL_HEIGHT, "w": PANEL_WIDTH, "x": at % per_line * PANEL_WIDTH, "y": line + at // per_line * PANEL_HEIGHT}
            panels.append(panel(len(panels) + 1, place, *one))
        line += -(-len(row) // per_line) * PANEL_HEIGHT
    return {
        "title": "Grampus", "uid": "grampus", "schemaVersion": 39, "version": 1, "editable": True, "tags": ["grampus", "hbase"],
        "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser", "panels": panels,
        "templating": {"list": [
            {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
            {"name": "instance", "label": "Server", "type": "query", "datasource": SOURCE, "query": "label_values(up, instance)",
             "refresh": 2, "multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}},
        ]},
    }


SOURCE = {"type": "prometheus", "uid": "${source}"}


def panel(number, place, title, unit, targets):
    return {
        "type": "timeseries", "id": number, "title": title, "gridPos": place, "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 8, "showPoints": "never"}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [{"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
                    for at, (expression, legend) in enumerate(targets)],
    }
