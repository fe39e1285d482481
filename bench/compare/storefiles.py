"""Store files of a table, where both servers keep them: below a root in HBase's layout."""
import glob
import os


def of(server, table):
    """Paths of the table's store files, without those that are still written."""
    # HBase's root is `root`, that of Grampus `data`; both name regions and files by hexadecimal digits.
    return {path for root in ("root", "data") for path in glob.glob(os.path.join(
        server.server.directory, root, "data", "default", table, "*", "info0", "[0-9a-f]*"))}


def drop_from_page_cache(server, table):
    """Lets the kernel forget the files' pages, so that the next read is one of the disk."""
    for path in of(server, table):
        with open(path, "rb") as file:
            # Pages that are not on disk yet cannot be dropped.
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
