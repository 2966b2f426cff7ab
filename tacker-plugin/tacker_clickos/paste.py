# SPDX-License-Identifier: Apache-2.0
"""Writes the api-paste.ini of a Tacker with ClickOS: clickos-tacker-paste.

The file is an allow-list: Tacker does not serve an API that a later release
adds. It leaves out /vnflcm/v2 and all that shares its code. These run scripts
of packages as the user of tacker-conductor and know no projects.
"""

import argparse
import configparser
import io
import sys

#: (path, our filter's name for the API, filters of Tacker, application)
_APIS = (
    ('/v1.0', 'vims', 'extensions', 'tacker.api.v1.router:APIRouter'),
    ('/vnfpkgm/v1', 'packages', '',
     'tacker.api.vnfpkgm.v1.router:VnfpkgmAPIRouter'),
    ('/vnflcm/v1', 'lifecycle', '',
     'tacker.api.vnflcm.v1.router:VnflcmAPIRouter'))
_BEFORE = ('clickos_front', 'request_id', 'catch_errors', 'authtoken',
           'keystonecontext')
_FILTERS = {
    'clickos_front': 'tacker_clickos.front:factory',
    'request_id': 'oslo_middleware:RequestId.factory',
    'catch_errors': 'oslo_middleware:CatchErrors.factory',
    'authtoken': 'keystonemiddleware.auth_token:filter_factory',
    'keystonecontext': 'tacker.auth:TackerKeystoneContext.factory',
    'extensions': 'tacker.api.extensions:extension_middleware_factory'}
_OURS = 'tacker_clickos.api_filter:factory'


def text():
    """Return the file."""
    parser = configparser.RawConfigParser()
    parser.optionxform = str
    parser.read_dict(_sections())
    written = io.StringIO()
    parser.write(written)
    return written.getvalue()


def _sections():
    sections = {'composite:tacker': {
        'use': 'egg:Paste#urlmap', '/': 'versions',
        **{path: api for path, api, _filters, _app in _APIS}}}
    for _path, api, filters, _app in _APIS:
        sections[f'composite:{api}'] = {
            'use': 'call:tacker.auth:pipeline_factory',
            'keystone': ' '.join([*_BEFORE, f'clickos_{api}',
                                  *filters.split(), f'{api}_app'])}
    for name, factory in _FILTERS.items():
        sections[f'filter:{name}'] = {'paste.filter_factory': factory}
    for _path, api, _filters, router in _APIS:
        sections[f'filter:clickos_{api}'] = {
            'paste.filter_factory': _OURS, 'api': api}
        sections[f'app:{api}_app'] = {
            'paste.app_factory': f'{router}.factory'}
    sections['pipeline:versions'] = {
        'pipeline': 'clickos_front versions_app'}
    sections['app:versions_app'] = {
        'paste.app_factory': 'tacker.api.versions:Versions.factory'}
    return sections


def main(arguments=None):
    """Write the file, or show it."""
    parser = argparse.ArgumentParser(
        prog='clickos-tacker-paste', description=__doc__.split('\n')[0])
    parser.add_argument('output', nargs='?',
                        help='the file, such as /etc/tacker/api-paste.ini; '
                             'standard output if it is left out')
    output = parser.parse_args(arguments).output
    if output is None:
        sys.stdout.write(text())
    else:
        with open(output, 'w', encoding='utf-8') as file:
            file.write(text())
    return 0


if __name__ == '__main__':
    sys.exit(main())
