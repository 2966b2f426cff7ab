# SPDX-License-Identifier: Apache-2.0
"""The releases of Debian that are tried, and the one of this machine."""

import dataclasses
import pathlib
import re


@dataclasses.dataclass(frozen=True)
class Release:
    """A release of Debian."""

    number: str
    name: str
    #: the version of its Xen, in names of packages and folders
    xen: str


RELEASES = {each.number: each for each in (
    Release('12', 'bookworm', '4.17'), Release('13', 'trixie', '4.20'))}


def here(file=pathlib.Path('/etc/os-release')):
    """Return this machine's release; the oldest on another system."""
    try:
        text = file.read_text()
    except OSError:
        text = ''
    found = re.search(r'^VERSION_ID="?(\d+)"?$', text, re.MULTILINE)
    return RELEASES.get(found and found[1], RELEASES['12'])
