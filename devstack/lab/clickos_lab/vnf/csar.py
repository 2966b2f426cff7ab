# SPDX-License-Identifier: Apache-2.0
"""The catalogue's folders, and the packages that are built of them."""

import sys

from clickos_lab import paths
from clickos_lab import shell

TEMPLATES = paths.REPO / 'vnfd-templates'


def names():
    """Return the names of all VNFs of the catalogue."""
    return sorted(path.parent.parent.name
                  for path in TEMPLATES.glob('*/Definitions/*.yaml'))


def build(template, target, *options):
    """Build a package.

    :param template: name of the catalogue, or another folder
    :param options: of build_csar.py
    """
    shell.output([sys.executable, TEMPLATES / 'build_csar.py', template,
                  target, *options])
