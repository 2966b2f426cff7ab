# SPDX-License-Identifier: Apache-2.0
"""The catalog's folders, and the packages that are built of them."""

import importlib.util
import sys

from clickos_lab import paths
from clickos_lab import shell

TEMPLATES = paths.REPO / 'vnfd-templates'


def files(name):
    """Return {name in the package: bytes} of a VNF."""
    return _builder().collect(TEMPLATES / name)


def configuration(name):
    """Return a VNF's Click configuration, as its package has it."""
    return files(name)[f'Files/{name}.click'].decode()


def _builder():
    """Return the module ``build_csar.py``, which is a program."""
    path = TEMPLATES / 'build_csar.py'
    spec = importlib.util.spec_from_file_location('build_csar', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names():
    """Return the names of all VNFs of the catalog."""
    return sorted(path.parent.parent.name
                  for path in TEMPLATES.glob('*/Definitions/*.yaml'))


def build(template, target, *options, templates=TEMPLATES):
    """Build a package.

    :param template: name of the catalog, or another folder
    :param options: of build_csar.py
    :param templates: the folder of the catalog, of another release
    """
    shell.output([sys.executable, templates / 'build_csar.py', template,
                  target, *options])
