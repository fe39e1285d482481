"""Java support for all scripts: the JVM, Maven class paths, and Hadoop-style configuration.

Maven fills class paths once, below compat/target; they are reused until the pom or a source
changes. All output of a run is below compat/target too.
"""
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

COMPAT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(COMPAT, "target")

# hbase-client versions by the Maven profile of compat/java that builds against them.
CLIENT_PROFILES = {"2.5.10": "client-2.5", "2.6.4": "client-2.6", "3.0.0-beta-1": "client-3.0"}

# The arguments that HBase's own start script passes to a Java 17 server.
SERVER_OPENS = [
    "--add-modules", "jdk.unsupported",
    *(word for package in ("java.io", "java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref",
                           "java.lang.reflect", "java.util", "java.util.concurrent", "jdk.internal.util.random")
      for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")),
    "--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
]


def die(message):
    """Ends the script with one line and exit code 2: the test could not run, so there is no
    result."""
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(2)


def java():
    """The path of a Java of at least version 17."""
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not path or not os.path.exists(path):
        die("no java found; install a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless) or set JAVA_HOME")
    text = subprocess.run([path, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', text)
    if not version or int(version.group(1)) < 17:
        die(f"{path} is too old: Java 17 or later is needed")
    return path


def maven(directory, output, *arguments):
    """Runs `mvn package` in `directory`, unless `output` is newer than the pom and all sources."""
    os.makedirs(TARGET, exist_ok=True)
    with open(os.path.join(TARGET, "maven.lock"), "w") as lock:
        # Concurrent scripts must not fill the same directory.
        fcntl.flock(lock, fcntl.LOCK_EX)
        _maven(directory, output, arguments)


def _maven(directory, output, arguments):
    stamp = os.path.join(output, "built")
    inputs = [os.path.join(directory, "pom.xml"), *glob.glob(os.path.join(directory, "src/**/*.java"), recursive=True)]
    if os.path.exists(stamp) and os.path.getmtime(stamp) > max(map(os.path.getmtime, inputs)):
        return
    if not shutil.which("mvn"):
        die("no mvn found; install Maven 3.6 or later (Debian: apt-get install maven)")
    print(f"building {os.path.relpath(directory)} {' '.join(arguments)}", file=sys.stderr)
    # Old classes may belong to removed sources, old jars to former versions.
    for directory_of_old in ("classes", "lib"):
        shutil.rmtree(os.path.join(output, directory_of_old), ignore_errors=True)
    done = subprocess.run(["mvn", "-q", "-B", "package", *arguments], cwd=directory, stdout=sys.stderr)
    if done.returncode:
        die(f"mvn package failed in {directory}")
    with open(stamp, "w"):
        pass


# The artifacts of HBase's servers, by the version of releases. For 3.0, the newest of which Maven Central
# has all modules of the servers.
SERVER_VERSIONS = {"2.5": "2.5.10-hadoop3", "2.6": "2.6.1-hadoop3", "3.0": "3.0.0-alpha-4"}


def hbase_class_path(tests=True, version="2.5"):
    """HBase's server jars; with `tests` also those with PerformanceEvaluation, and the classes of
    compat/hbase."""
    name = "hbase" if version == "2.5" else f"hbase-{version}"
    output = os.path.join(TARGET, name)
    chosen = [] if version == "2.5" else [f"-Dhbase.version={SERVER_VERSIONS[version]}", f"-Dhbase.output={name}",
                                              "-Dhbase.excluded=**/FileCheck.java",
                                              *(["-Dhbase.server.only"] if version == "3.0" else [])]
    maven(os.path.join(COMPAT, "hbase"), output, *chosen)
    if tests:
        return f"{output}/classes:{output}/lib/*"
    jars = sorted(glob.glob(os.path.join(output, "lib", "*.jar")))
    return ":".join([os.path.join(output, "classes"), *(jar for jar in jars if not jar.endswith("-tests.jar"))])


def client_class_path(version):
    """The program of compat/java, compiled against hbase-client `version`, and that client."""
    output = os.path.join(TARGET, "java", version)
    maven(os.path.join(COMPAT, "java"), output, f"-P{CLIENT_PROFILES[version]}")
    return f"{output}/classes:{output}/lib/*"


def write_site(path, settings):
    """Writes a Hadoop configuration file."""
    with open(path, "w") as out:
        out.write('<?xml version="1.0"?>\n<configuration>\n')
        for name, value in settings.items():
            out.write(f"<property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>\n")
        out.write("</configuration>\n")


def write_logging(directory, level):
    """Configures log4j2 to log `level` and above to standard error."""
    with open(os.path.join(directory, "log4j2.properties"), "w") as out:
        out.write(
            "status = warn\n"
            "appender.console.type = Console\n"
            "appender.console.name = console\n"
            "appender.console.target = SYSTEM_ERR\n"
            "appender.console.layout.type = PatternLayout\n"
            "appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %.1000m%n%ex{20}\n"
            f"rootLogger = {level.upper()},console\n"
            "logger.native.name = org.apache.hadoop.util.NativeCodeLoader\n"
            "logger.native.level = error\n")


# HBase looks up its codec classes in Hadoop's own configuration. Its ZSTD needs a native library,
# so a codec of compat/hbase, which is only on HBase's class path, writes and reads the same stream.
CODECS = {"hbase.io.compress.zstd.codec": "compat.hbase.PlainZstdCodec"}


def conf_directory(settings, level="warn", directory=None, core=None):
    """Writes a configuration directory with hbase-site.xml, core-site.xml and logging; by default a
    fresh one. `core` are further settings of core-site.xml."""
    if directory is None:
        os.makedirs(TARGET, exist_ok=True)
        directory = tempfile.mkdtemp(prefix="conf.", dir=TARGET)
    os.makedirs(directory, exist_ok=True)
    write_site(os.path.join(directory, "hbase-site.xml"), settings)
    write_site(os.path.join(directory, "core-site.xml"),
               {"hadoop.tmp.dir": os.path.join(directory, "tmp"), **CODECS, **(core or {})})
    write_logging(directory, level)
    return directory


class Endpoint:
    """The ports of a server: ZooKeeper protocol, master RPC, region server RPC; and its pages."""

    def __init__(self, host="127.0.0.1", port_offset=0):
        self.host = host
        # Added to the default port of every service, also of the gateways.
        self.port_offset = port_offset
        self.zookeeper = 2181 + port_offset
        self.master = 16000 + port_offset
        self.region_server = 16020 + port_offset
        self.pages = 16030 + port_offset
        self.master_pages = 16010 + port_offset

    def ports(self):
        return [self.zookeeper, self.master, self.region_server]

    def quorum(self):
        """The address of ZooKeeper, as clients of other languages take it."""
        return f"{self.host}:{self.zookeeper}"

    def settings(self, registry):
        """The client settings for one of the registries `zk`, `rpc`, `master`."""
        package = "org.apache.hadoop.hbase.client."
        if registry == "zk":
            return {"hbase.zookeeper.quorum": self.host, "hbase.zookeeper.property.clientPort": self.zookeeper}
        if registry == "rpc":
            return {"hbase.client.registry.impl": package + "RpcConnectionRegistry",
                    "hbase.client.bootstrap.servers": f"{self.host}:{self.region_server}"}
        if registry == "master":
            return {"hbase.client.registry.impl": package + "MasterRegistry",
                    "hbase.masters": f"{self.host}:{self.master}"}
        raise ValueError(registry)

    def add_options(parser):
        """Adds the options of an endpoint to an argparse parser."""
        parser.add_argument("--host", default="127.0.0.1", help="address of the server")
        parser.add_argument("--port-offset", type=int, default=0, metavar="N",
                            help="add N to the ports 2181, 16000 and 16020, like grampus --port-offset")

    def of(arguments):
        """The endpoint of parsed arguments."""
        return Endpoint(arguments.host, arguments.port_offset)
