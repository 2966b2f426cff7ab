# SPDX-License-Identifier: Apache-2.0
"""What openstackclient loads."""

from osc_lib import utils

DEFAULT_API_VERSION = '1'
API_VERSION_OPTION = 'os_clickos_api_version'
API_NAME = 'clickos'
API_VERSIONS = {'1': 'clickos_client.api.Client'}


def make_client(instance):
    """Return the client for openstackclient's client manager."""
    make = utils.get_client_class(API_NAME, instance._api_version[API_NAME],
                                  API_VERSIONS)
    return make(instance.session, region_name=instance.region_name,
                interface=instance.interface)


def build_option_parser(parser):
    """Add the global options."""
    parser.add_argument(
        '--os-clickos-api-version', metavar='<clickos-api-version>',
        default=utils.env('OS_CLICKOS_API_VERSION',
                          default=DEFAULT_API_VERSION),
        help='Version of the ClickOS API, default ' + DEFAULT_API_VERSION
             + ' (Env: OS_CLICKOS_API_VERSION)')
    return parser
