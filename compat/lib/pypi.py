"""Packages from PyPI with pinned versions; pip fetches them on first use, below compat/target."""
import glob
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile

from javatools import TARGET, die

# PostgreSQL's programs, for machines without them. The parts of the wheel that are used here are
# the same for all versions of Python.
POSTGRES = "pgserver==0.1.4"
WHEEL_PYTHON = "3.12"
# The client for Thrift 1.
HAPPYBASE = "happybase==1.3.0"


def module_path(package):
    """The directories to prepend to sys.path in order to import a package."""
    home = os.path.join(TARGET, package.split("==")[0])
    if not has(home, package):
        pip_install(home, package)
        done(home, package)
    return glob.glob(os.path.join(home, "lib", "python*", "site-packages"))


def source(package):
    """The directory of a package's source archive, which has its tests."""
    home = os.path.join(TARGET, package.replace("==", "-") + ".source")
    if not has(home, package):
        pip_install(home)
        pip(home, "download", "--no-deps", "--no-binary", ":all:", "--dest", home, package)
        for archive in glob.glob(os.path.join(home, "*.tar.gz")):
            with tarfile.open(archive) as files:
                files.extractall(home, filter="data")
        done(home, package)
    return os.path.join(home, package.replace("==", "-"))


def psql():
    """The program psql: this machine's, or else from PyPI."""
    installed = shutil.which("psql")
    if installed:
        return installed
    home = os.path.join(TARGET, "postgres")
    program = os.path.join(home, "pgserver", "pginstall", "bin", "psql")
    if not has(home, POSTGRES):
        # The wheel is unpacked, not installed, so any version of Python works.
        pip_install(home)
        pip(home, "download", "--no-deps", "--only-binary", ":all:", "--python-version", WHEEL_PYTHON, "--implementation", "cp",
            "--platform", f"manylinux2014_{platform.machine()}", "--dest", home, POSTGRES)
        for wheel in glob.glob(os.path.join(home, "pgserver-*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(home)
        os.chmod(program, 0o755)
        done(home, POSTGRES)
    return program


def pip_install(home, *packages):
    """Creates a virtual environment with packages."""
    shutil.rmtree(home, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", home], stdout=sys.stderr)
    if made.returncode:
        die("python3 -m venv failed (Debian: apt-get install python3-venv)")
    if packages:
        pip(home, "install", *packages)


def pip(home, command, *words):
    """Runs a pip."""
    run = subprocess.run([os.path.join(home, "bin", "pip"), command, "--quiet", "--disable-pip-version-check", *words],
                         stdout=sys.stderr)
    if run.returncode:
        die(f"pip {command} {words[-1]} failed")


def has(home, package):
    return os.path.exists(os.path.join(home, package))


def done(home, package):
    """Writes a marker; an installation without it is incomplete and is repeated."""
    with open(os.path.join(home, package), "w"):
        pass
