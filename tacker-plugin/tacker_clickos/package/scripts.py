# SPDX-License-Identifier: Apache-2.0
"""Files of a package that Tacker's stock driver or its helpers would run."""

from tacker_clickos.package import archive

#: Folder of the templates that only a script of the package can fill in.
_TEMPLATES = 'BaseHOT'
#: Suffixes of what Python imports.
_CODE = ('.py', '.pyc', '.pyo', '.so')


def check(files):
    """Refuse a package with scripts for tacker-conductor.

    :param files: what archive.read returned
    :raises: PackageRefused
    """
    for name in files:
        if _TEMPLATES in name.split('/')[:-1] \
                or name.lower().endswith(_CODE):
            raise archive.refused(
                name, 'is or needs a script that tacker-conductor runs; the '
                'operator names who may bring one (rule clickos:stock_scripts'
                ')')
