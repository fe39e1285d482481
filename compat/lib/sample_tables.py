"""Tables with several families, encodings, codecs, splits, versions and deletes, filled through
`grampus shell`, and their contents for comparisons."""
import difflib
import subprocess

import shells
from javatools import die

TABLES = ["plain", "families", "encoded", "split", "ns1:spaced"]
FILL = """
create 'plain', 'f'
create 'families', {NAME => 'a', VERSIONS => 3}, {NAME => 'b', COMPRESSION => 'GZ', BLOOMFILTER => 'ROWCOL'}
create 'encoded', {NAME => 'f', DATA_BLOCK_ENCODING => 'FAST_DIFF'}, {NAME => 'g', DATA_BLOCK_ENCODING => 'ROW_INDEX_V1'}
create 'split', 'f', SPLITS => ['g', 'n', 't']
create_namespace 'ns1'
create 'ns1:spaced', 'f'
create 'off', 'f'
put 'off', 'r', 'f:q', 'hidden'
disable 'off'
"""
CHANGE = """
put 'plain', 'row00000003', 'f:q', 'changed'
delete 'families', 'row00000004', 'a:q'
put 'split', 'zzz', 'f:q', 'new'
flush 'plain'
major_compact 'plain'
enable 'off'
scan 'off'
disable 'off'
"""


def play(binary, endpoint, script):
    """Runs a script in `grampus shell`; returns its output."""
    output, code = shells.grampus(binary, endpoint, script, "--echo")
    if code:
        die(f"grampus shell ended with {code}:\n{output[-2000:]}")
    return output


def fill(binary, endpoint, rows):
    lines = [FILL]
    for table, columns in (("plain", ["f:q"]), ("families", ["a:q", "b:q"]), ("encoded", ["f:q", "g:r"]), ("ns1:spaced", ["f:q"])):
        for row in range(50):
            lines += [f"put '{table}', 'row{row:08}', '{column}', '{table} {row}'" for column in columns]
    lines += [f"put 'split', '{key}{row}', 'f:q', '{row}'" for key in "aghnotz" for row in range(10)]
    lines.append("flush 'families'")
    # Versions and deletes, in the memstore when HBase stops.
    lines += [f"put 'families', 'row{row:08}', 'a:q', 'second {row}'" for row in range(0, 50, 3)]
    lines += [f"delete 'families', 'row{row:08}', 'b:q'" for row in range(0, 50, 7)]
    lines += [f"deleteall 'encoded', 'row{row:08}'" for row in range(0, 50, 5)]
    play(binary, endpoint, "\n".join(lines) + "\n")
    done = subprocess.run([binary, "bench", "sequentialRead", "--load", "--table", "large", "--rows", str(rows), "--value-size", "100",
                           "--clients", "2", "--batch", "1000", "--seconds", "1", "--zookeeper", endpoint.quorum()],
                          capture_output=True, text=True)
    if done.returncode:
        die(f"grampus bench failed:\n{done.stderr[-2000:]}")


def contents(binary, endpoint):
    """The lines that show all tables: names, descriptors, and all visible versions of all cells. (What
    deletes hide is physically removed by flushes and compactions.)"""
    script = ["list", "list_namespace", "is_enabled 'off'"]
    for table in [*TABLES, "off"]:
        script.append(f"describe '{table}'")
    script += [f"scan '{table}', {{VERSIONS => 10}}" for table in TABLES]
    script += ["count 'large'", "scan 'large', {LIMIT => 200}", "scan 'large', {REVERSED => true, LIMIT => 200}"]
    output = play(binary, endpoint, "\n".join(script) + "\n")
    # A count by Grampus needs no scan, and shows no progress.
    return [line for line in output.splitlines()
            if not line.startswith(("Took ", "Current count: ")) and " row(s) in " not in line]


def compare(what, wanted, got):
    """Prints the differences; returns their number."""
    lines = [line for line in difflib.unified_diff(wanted, got, "before", "after", lineterm="", n=0)]
    print(f"{what}: {len(wanted)} lines, {'equal' if not lines else f'{len(lines)} lines differ'}", flush=True)
    for line in lines[:30]:
        print(f"   {line}")
    return len(lines)
