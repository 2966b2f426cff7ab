# SPDX-License-Identifier: Apache-2.0
"""The package that a VNF is deployed from: a file, Tacker's, the catalog's."""

import contextlib
import dataclasses
import hashlib
import os
import time

from keystoneauth1 import exceptions as ks_exc
from osc_lib import exceptions

from clickos_osc import files
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc import waiting

api = lazy.module('clickos_client.api')
catalog = lazy.module('clickos_client.catalog')
descriptor_reader = lazy.module('clickos_client.descriptor_reader')

_CATALOG, _DIGEST = 'clickos_catalog', 'clickos_digest'
_ONBOARD_S = 60
_ONBOARDED = 'ONBOARDED'


@dataclasses.dataclass(frozen=True)
class Package:
    """A package and its bytes.

    :ivar id: in Tacker; None if it is not there yet
    :ivar name: for the VNF, if it gets no other
    """

    id: str | None
    vnfd_id: str | None
    name: str
    content: bytes
    marks: dict

    @property
    def descriptor(self):
        """The answer of descriptor_reader.read()."""
        with damages(self.name):
            return descriptor_reader.read(self.content)


@contextlib.contextmanager
def damages(name):
    """Show a damaged package as openstackclient shows errors."""
    try:
        yield
    except (descriptor_reader.Damaged, catalog.CatalogError) as exc:
        raise exceptions.CommandError(formatting.line(f'{name}: {exc}'))


def find(source, clickos, wanted):
    """Return the Package that a name, an id or a file means.

    A path ends with .csar or has a slash. Other names are those of packages
    in Tacker, by id, VNFD id or product, then of the catalog.

    :param source: tacker.Tacker
    :param clickos: client_manager.clickos
    """
    known = [each for each in source.packages()
             if each['onboardingState'] == _ONBOARDED]
    if wanted.endswith('.csar') or os.sep in wanted:
        return _of_file(known, wanted)
    by_id = [each for each in known
             if wanted in (each['id'], each['vnfdId'])]
    if by_id:
        return of_tacker(source, by_id[0])
    offered = from_catalog(clickos, wanted)
    if offered is not None:
        return _of_catalog(known, wanted, offered)
    named = [each for each in known if each['vnfProductName'] == wanted]
    if len(named) > 1:
        ids = ', '.join(each['id'] for each in named)
        raise exceptions.CommandError(
            f'{formatting.line(wanted)}: several packages have this'
            ' product; use'
            f' an ID: {ids}')
    if not named:
        raise exceptions.CommandError(
            f'{formatting.line(wanted)}: no package in Tacker and none in the'
            ' catalog; a file ends with .csar')
    return of_tacker(source, named[0])


def of_tacker(source, body):
    """Return a package of Tacker with its content."""
    return Package(body['id'], body['vnfdId'], body['vnfProductName'],
                   source.package_content(body['id']), {})


def of_vnf(source, vnfd_id):
    """Return the package of a VNF."""
    for body in source.packages():
        if body.get('vnfdId') == vnfd_id:
            return of_tacker(source, body)
    raise exceptions.CommandError(
        f'VNFD {formatting.line(str(vnfd_id))}: no package of the project'
        ' has it')


def from_catalog(clickos, name):
    """Return the bytes of a package of the catalog, or None."""
    try:
        return clickos.catalog_package(name)
    except api.ClickOSError as exc:
        if exc.status == 404:
            return None
        raise exceptions.CommandError(
            f'{formatting.text(exc.message)} (HTTP {exc.status})')
    except ks_exc.EndpointNotFound:
        return None


def onboard(source, package):
    """Upload a package and wait until it is ready; return its ids.

    A package that Tacker refuses is deleted.

    :returns: (package id, VNFD id)
    """
    package_id = source.create_package(package.marks)
    try:
        source.upload(package_id, package.content)
        return package_id, _ready(source, package_id)['vnfdId']
    except BaseException:
        source.delete_package(package_id)
        raise


def _ready(source, package_id):
    end_s = time.monotonic() + _ONBOARD_S
    while True:
        found = source.package(package_id)
        if found['onboardingState'] == _ONBOARDED:
            return found
        if found['onboardingState'] == 'CREATED':
            raise exceptions.CommandError(
                'Tacker refuses the package without a reason; its log has'
                ' it')
        if time.monotonic() > end_s:
            raise exceptions.CommandError(
                f'package {package_id}: not on-boarded after {_ONBOARD_S} s')
        waiting.pause()


def _of_file(known, path):
    content = files.content(path, catalog.MAX_BYTES, 'a package')
    name = os.path.basename(path).removesuffix('.csar')
    with damages(path):
        vnfd_id = descriptor_reader.vnfd_id(content)
    for body in known:
        if body['vnfdId'] == vnfd_id:
            if not _is_same(body, content):
                raise exceptions.CommandError(formatting.line(
                    f'{path}: package {body["id"]} has the descriptor_id'
                    f' {vnfd_id} and other files; give this one another'
                    ' descriptor_id, or name the package by its ID'))
            return Package(body['id'], vnfd_id, name, content, {})
    return Package(None, None, name, content, {})


def _is_same(body, content):
    """Return whether Tacker has these bytes under a package."""
    checksum = body.get('checksum') or {}
    kind = str(checksum.get('algorithm')).lower().replace('-', '')
    return kind in ('sha512', 'sha256') and checksum.get(
        'hash') == hashlib.new(kind, content).hexdigest()


def _of_catalog(known, name, content):
    """Return a package of the catalog, on-boarded earlier or not."""
    digest = hashlib.sha256(content).hexdigest()
    marks = {_CATALOG: name, _DIGEST: digest}
    for body in known:
        if marks.items() <= (body.get('userDefinedData') or {}).items():
            return Package(body['id'], body['vnfdId'], name, content, marks)
    with damages(name):
        return Package(None, None, name, catalog.with_fresh_id(content),
                       marks)
