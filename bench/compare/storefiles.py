"""Store files of a table: both servers store them below a root in HBase's layout."""
import glob
import os


def of(server, table):
    """Paths of the table's store files, without those that are still being written."""
    # HBase's root is `root`, Grampus's is `data`; both name regions and files with hexadecimal
    # digits.
    return {path for root in ("root", "data") for path in glob.glob(os.path.join(
        server.server.directory, root, "data", "default", table, "*", "info0", "[0-9a-f]*"))}


def drop_from_page_cache(server, table):
    """Drops the pages of the table's store files, so that the next read is from the disk."""
    drop(of(server, table))


def drop(paths):
    """Drops the files' pages from the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            # Dirty pages cannot be dropped.
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
