"""Runs a script of commands in a shell: HBase's own under JRuby, or `grampus shell`.

Both read the script from a pipe and echo it after a prompt, `NAME:LINE:DEPTH> `, as HBase's shell
does. So the output of a command is between its line and the next prompt.
"""
import os
import re
import shutil
import subprocess

from javatools import COMPAT, SERVER_OPENS, TARGET, conf_directory, die, java, maven

DIRECTORY = os.path.join(COMPAT, "shell")
PROMPT = re.compile(r"^(?:hbase|grampus):\d+:\d+> ?", re.MULTILINE)
# The prompt of continuation lines; HBase's shell prints none within brackets.
PROMPT_OF_MORE = re.compile(r"^(?:hbase|grampus):\d+:\d+\* ?", re.MULTILINE)
# Limit for all suites in one shell on a slow machine.
PATIENCE_S = 2400


def stock(endpoint, script, *options):
    """Runs `script` in HBase's shell; returns its output and exit code."""
    output = os.path.join(TARGET, "shell")
    maven(DIRECTORY, output)
    conf = conf_directory(endpoint.settings("zk"))
    with open(os.path.join(conf, "log4j.properties"), "w") as out:
        out.write("log4j.rootLogger=OFF\n")
    # The commands are short: compiling them would cost more than it saves.
    command = [java(), *SERVER_OPENS, "-XX:TieredStopAtLevel=1", "-Djruby.compile.mode=OFF", "-Duser.timezone=UTC",
               "-cp", f"{conf}:{output}/lib/*", "org.jruby.Main", "uri:classloader:/jar-bootstrap.rb", *options]
    try:
        return _played(command, script, os.path.join(output, "log"))
    finally:
        shutil.rmtree(conf, ignore_errors=True)


def grampus(binary, endpoint, script, *options):
    """Runs `script` in `grampus shell`."""
    command = [os.path.abspath(binary), "shell", "--zookeeper", endpoint.quorum(), *options]
    os.makedirs(TARGET, exist_ok=True)
    return _played(command, script, os.path.join(TARGET, "grampus-shell.log"))


def _played(command, script, log_path):
    environment = {**os.environ, "TZ": "UTC", "USER": "compat", "HADOOP_USER_NAME": "compat"}
    os.makedirs(os.path.dirname(log_path), exist_ok=True)
    with open(log_path, "wb") as log:
        try:
            # Scripts name files relative to their directory.
            done = subprocess.run(command, input=script.encode(), stdout=subprocess.PIPE, stderr=log,
                                  env=environment, cwd=DIRECTORY, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            die(f"{command[0]} did not end in {PATIENCE_S} s; its log: {log_path}")
    return done.stdout.decode("utf-8", "replace"), done.returncode


def answers(output):
    """The output of each command, in order: the text after the line that echoes the command's first
    line."""
    pieces = PROMPT.split(PROMPT_OF_MORE.sub("", output))[1:]
    pieces = [piece.partition("\n")[2] if "\n" in piece else "" for piece in pieces if piece.strip()]
    return pieces
