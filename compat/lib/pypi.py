"""What is fetched from PyPI with pip, of versions that are named; below compat/target, on first use."""
import glob
import os
import platform
import shutil
import subprocess
import sys
import zipfile

from javatools import TARGET, die

# PostgreSQL's programs, for machines without them. The wheel is the same for all versions of Python but for what is not used here.
POSTGRES = "pgserver==0.1.4"
WHEEL_PYTHON = "3.12"


def module_path(package):
    """The directories to be put before sys.path, so that a package can be imported."""
    home = os.path.join(TARGET, package.split("==")[0])
    if not has(home, package):
        pip_install(home, package)
        done(home, package)
    return glob.glob(os.path.join(home, "lib", "python*", "site-packages"))


def psql():
    """The program psql: of this machine, or else from PyPI."""
    installed = shutil.which("psql")
    if installed:
        return installed
    home = os.path.join(TARGET, "postgres")
    program = os.path.join(home, "pgserver", "pginstall", "bin", "psql")
    if not has(home, POSTGRES):
        # Nothing is installed: the wheel is taken apart, whatever Python runs this.
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
    """A place with a pip of its own, and packages in it."""
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
    """Written last, so that what was not finished is made anew."""
    with open(os.path.join(home, package), "w"):
        pass
