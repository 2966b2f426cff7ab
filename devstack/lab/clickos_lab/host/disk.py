# SPDX-License-Identifier: Apache-2.0
"""A disk of a host that takes no write for a while."""

import contextlib

from clickos_lab import shell


@contextlib.contextmanager
def read_only(folder, log):
    """Cover a folder by a view of itself that takes no write.

    The disk below stays as it is, because open files may still be written.

    :param folder: as processes see it that open files in it later
    """
    shell.run(['mount', '--bind', folder, folder], log)
    try:
        shell.run(['mount', '-o', 'remount,bind,ro', folder], log)
        yield
    finally:
        # A file may be opened at this moment; the view then goes with it.
        shell.run(['umount', '--lazy', folder], log)
