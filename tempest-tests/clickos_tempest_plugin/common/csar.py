# SPDX-License-Identifier: Apache-2.0
"""Copies of CSARs, the firewall's changed as a test needs them."""

import functools
import hashlib
import io
import os
import re
import uuid
import zipfile

from tempest import config

CONF = config.CONF

META = 'TOSCA-Metadata/TOSCA.meta'
VNFD = 'Definitions/firewall.yaml'
CLICK = 'Files/firewall.click'
_IMAGE = re.compile(r'(sw_image_data:\n\s*name: )\S+')
#: What build_csar.py names of the configuration.
_GROUPS = re.compile(r'\n *groups: \{[^}]*\}')
_ID = re.compile(r'(descriptor_id: )\S+')
_HASH = r'(Name: {}\n(?:[^\n]+\n)*?Hash: )[0-9a-f]+'


def firewall(click=None, vnfd=None, meta=None, without=(), more=None):
    """Return the bytes of a package with a VNFD id of its own.

    :param click: function from the Click configuration to another one
    :param vnfd: function from the VNFD's text to another one
    :param meta: function from TOSCA.meta's text to another one
    :param more: {name or ZipInfo: text} of files TOSCA.meta does not name
    :param without: files that are left out, though TOSCA.meta names them
    """
    files = _fresh(CONF.clickos.csar_path, VNFD)
    if vnfd:
        files[VNFD] = _changed(vnfd, files[VNFD])
    if click:
        files[CLICK] = _changed(click, files[CLICK])
        files[VNFD] = _GROUPS.sub('', files[VNFD])
        files[META] = re.sub(
            _HASH.format(re.escape(CLICK)),
            rf'\g<1>{hashlib.sha256(files[CLICK].encode()).hexdigest()}',
            files[META])
    if meta:
        files[META] = _changed(meta, files[META])
    files.update(more or {})
    return _zip({name: text for name, text in files.items()
                 if name not in without})


def nat(vnfd=None):
    """Return the bytes of the NAT's package with a VNFD id of its own.

    :param vnfd: function from the VNFD's text to another one
    """
    return _package(CONF.clickos.nat_csar_path, 'nat', vnfd)


def of_catalog(name, vnfd=None):
    """Return the bytes of a VNF's package with a VNFD id of its own.

    :param vnfd: function from the VNFD's text to another one
    """
    path = os.path.join(CONF.clickos.catalog_path, f'{name}.csar')
    return _package(path, name, vnfd)


def _package(path, name, vnfd):
    entry = f'Definitions/{name}.yaml'
    files = _fresh(path, entry)
    if vnfd:
        files[entry] = _changed(vnfd, files[entry])
    return _zip(files)


def all_of(*changes):
    """Return a function that makes several changes; None without any."""
    made = [change for change in changes if change]
    return functools.partial(functools.reduce, lambda text, change: change(
        text), made) if made else None


def _fresh(path, vnfd):
    """Return {name: text} of a package with another VNFD id."""
    with zipfile.ZipFile(path) as source:
        files = {name: source.read(name).decode()
                 for name in source.namelist()}
    files[vnfd] = _ID.sub(rf'\g<1>{uuid.uuid4()}', files[vnfd])
    return files


def with_image(text, name):
    """Return a VNFD's text with another name of the guests' image."""
    return _IMAGE.sub(rf'\g<1>{name}', text)


def with_groups(text, groups):
    """Return a VNFD's text with other groups of elements in its policies."""
    return re.sub(r'\n( *)artifact: (\w+)',
                  rf'\n\g<1>artifact: \g<2>\n\g<1>groups: {groups}',
                  _GROUPS.sub('', text))


def _changed(change, text):
    """Apply a change that must not miss what it is meant for."""
    result = change(text)
    if result == text:
        raise AssertionError('the change found nothing in the package')
    return result


def _zip(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as csar:
        for name, text in files.items():
            csar.writestr(name, text)
    return packed.getvalue()
