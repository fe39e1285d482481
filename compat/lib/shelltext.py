"""Scripts of shell commands, and what shells print, made comparable.

A script holds a command a line, or over several lines of which all but the first are indented. `# own: REASON`
before a command says that grampus shell prints something else there, `# differs: REASON` that the server answers
something else, which HBase's shell shows too.
"""
import re


class Command:
    """A command of a script: its source, and why grampus shell, or any shell against Grampus, has another answer than
    HBase's, if it has."""

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


# What differs from run to run, and what stands for it.
VOLATILE = [
    (re.compile(r"^Took [\d.]+ seconds.*$", re.MULTILINE), "Took @ seconds"),
    # The stack of the server behind its message, and that of Java's client.
    (re.compile(r"^\tat .*\n", re.MULTILINE), ""),
    # Timestamps of the server's clock; those that a script wrote are of 1970.
    (re.compile(r"timestamp=20\d\d-\d\d-\d\dT[\d:.]+"), "timestamp=@now"),
    (re.compile(r"\(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [A-Z+\d]+\)"), "(@now)"),
    # Regions: table,start,id.encoded.
    (re.compile(r",1[67]\d{11}\.[0-9a-f]{32}\."), ",@id.@encoded."),
    (re.compile(r"\b[0-9a-f]{32}\b"), "@encoded"),
    (re.compile(r"\b(?:localhost|127\.0\.0\.1)(?:[:,]\d+)+"), "@server"),
    (re.compile(r"#<HBaseReceiver:0x[0-9a-f]+>"), "#<HBaseReceiver>"),
    (re.compile(r"\b\d+\.\d{4} average load"), "@ average load"),
    # The whole description of the table, which each version writes in its own way.
    (re.compile(r"(NoSuchColumnFamilyException: Column family \S* does not exist in region \S+) in table .*"), r"\1"),
    # Procedures and calls are numbered.
    (re.compile(r"pid=\d+"), "pid=@"),
    (re.compile(r"\bcallId[:=] ?\d+"), "callId=@"),
]

# Commands that show what they found in the order of the file system's directory.
UNORDERED = ("list_snapshots", "list_table_snapshots")


def sorted_rows(text):
    """`text` with its rows, which are indented, sorted; and the names of the value at its end."""
    lines = text.splitlines()
    rows = iter(sorted(line for line in lines if line.startswith(" ")))
    lines = [next(rows) if line.startswith(" ") else line for line in lines]
    in_value = lambda line: "=> [" + ", ".join(sorted(line[4:-1].split(", "))) + "]" if line.startswith("=> [") else line
    return "".join(in_value(line) + "\n" for line in lines)


# Lines of progress, whose number depends on time.
PROGRESS = re.compile(r"^\d+/\d+ regions updated\.\n", re.MULTILINE)


def normalized(command, text):
    """`text` without the rest of the command's lines, and with what differs from run to run replaced."""
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


# Attributes that the shell of 2.4 does not know, and so shows as metadata; and sizes that it shows as numbers only.
# grampus shell describes tables as the shell of 2.5 does.
def said_alike(text):
    """`text` without what differs between HBase's shells of 2.4 and 2.5."""
    text = text.replace("INDEX_BLOCK_ENCODING => 'NONE', ", "")
    text = text.replace("METADATA => {'INDEX_BLOCK_ENCODING' => 'NONE'}", "")
    text = text.replace("'INDEX_BLOCK_ENCODING' => 'NONE', ", "").replace(", 'INDEX_BLOCK_ENCODING' => 'NONE'", "")
    text = re.sub(r"'(\d+) B(?: \([^)]*\))?'", r"'\1'", text)
    return text.replace(", }", "}").replace(", , ", ", ")
