"""Scripts of shell commands, and normalization of shell output for comparison.

A script has one command per line; continuation lines are indented. `# own: REASON` before a command
means that grampus shell prints something else, `# differs: REASON` that the server returns
something else, which HBase's shell shows too.
"""
import re


class Command:
    """A command of a script: its source, and the reasons for which grampus shell (`own`), or any
    shell against Grampus (`differs`), prints something else than HBase, if it does."""

    def __init__(self, source, own, differs):
        self.source = source
        self.own = own or differs
        self.differs = differs


OWN = "# own: "
DIFFERS = "# differs: "


def commands_of(path):
    """The commands of a script."""
    commands, own, differs = [], None, None
    with open(path, encoding="utf-8") as script:
        for line in script:
            if line.startswith(OWN):
                own = line[len(OWN):].strip()
            elif line.startswith(DIFFERS):
                differs = line[len(DIFFERS):].strip()
            elif line.startswith(" "):
                commands[-1].source += line
            elif line.strip():
                commands.append(Command(line, own, differs))
                own, differs = None, None
    return commands


# Patterns of text that differs from run to run, and their replacements.
VOLATILE = [
    (re.compile(r"^Took [\d.]+ seconds.*$", re.MULTILINE), "Took @ seconds"),
    # The stack of the server after its message, and that of Java's client.
    (re.compile(r"^\tat .*\n", re.MULTILINE), ""),
    # Timestamps of the server's clock; those that a script writes are in 1970.
    (re.compile(r"timestamp=20\d\d-\d\d-\d\dT[\d:.]+"), "timestamp=@now"),
    (re.compile(r"\(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [A-Z+\d]+\)"), "(@now)"),
    # Regions: table,start,id.encoded.
    (re.compile(r",1[67]\d{11}\.[0-9a-f]{32}\."), ",@id.@encoded."),
    (re.compile(r"\b[0-9a-f]{32}\b"), "@encoded"),
    (re.compile(r"\b(?:localhost|127\.0\.0\.1)(?:[:,]\d+)+"), "@server"),
    (re.compile(r"#<HBaseReceiver:0x[0-9a-f]+>"), "#<HBaseReceiver>"),
    (re.compile(r"\b\d+\.\d{4} average load"), "@ average load"),
    # The description of the table, which each version formats differently.
    (re.compile(r"(NoSuchColumnFamilyException: Column family \S* does not exist in region \S+) in table .*"), r"\1"),
    # Procedures and calls are numbered.
    (re.compile(r"pid=\d+"), "pid=@"),
    (re.compile(r"\bcallId[:=] ?\d+"), "callId=@"),
    # The suites are one script, so a line number depends on the suites before it.
    (re.compile(r"^ERROR: line \d+, column", re.MULTILINE), "ERROR: line @, column"),
]

# Commands whose output is in directory order.
UNORDERED = ("list_snapshots", "list_table_snapshots")


def sorted_rows(text):
    """`text` with sorted rows, which are the indented lines, and sorted names in the value at its
    end."""
    lines = text.splitlines()
    rows = iter(sorted(line for line in lines if line.startswith(" ")))
    lines = [next(rows) if line.startswith(" ") else line for line in lines]
    in_value = lambda line: "=> [" + ", ".join(sorted(line[4:-1].split(", "))) + "]" if line.startswith("=> [") else line
    return "".join(in_value(line) + "\n" for line in lines)


# Progress lines, whose number depends on timing.
PROGRESS = re.compile(r"^\d+/\d+ regions updated\.\n", re.MULTILINE)


def normalized(command, text):
    """`text` without the command's continuation lines, and with volatile text replaced."""
    for line in command.source.splitlines()[1:]:
        if text.startswith(line + "\n"):
            text = text[len(line) + 1:]
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    text = PROGRESS.sub("", text)
    if command.source.startswith(UNORDERED):
        text = sorted_rows(text)
    text = "".join(line.rstrip() + "\n" for line in text.splitlines())
    return text.rstrip("\n") + "\n" if text.strip() else ""


# Attributes that the 2.4 shell does not know, and so shows as metadata; and sizes that it shows
# only as numbers. grampus shell describes tables as the 2.5 shell does.
def said_alike(text):
    """`text` without differences between HBase's shells 2.4 and 2.5."""
    text = text.replace("INDEX_BLOCK_ENCODING => 'NONE', ", "")
    text = text.replace("METADATA => {'INDEX_BLOCK_ENCODING' => 'NONE'}", "")
    text = text.replace("'INDEX_BLOCK_ENCODING' => 'NONE', ", "").replace(", 'INDEX_BLOCK_ENCODING' => 'NONE'", "")
    text = re.sub(r"'(\d+) B(?: \([^)]*\))?'", r"'\1'", text)
    return text.replace(", }", "}").replace(", , ", ", ")
