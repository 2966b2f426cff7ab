# SPDX-License-Identifier: Apache-2.0
"""The routes of Tacker that are served; a member gets 404 for any other.

An allow-list: a route that a later Tacker brings is not served before it
stands here.
"""

import re

#: {API: ((path, methods), ...)}; the paths are those behind Paste's urlmap.
APIS = {
    'vims': (
        ('/vims(.json)', 'GET POST'),
        ('/vims/{}', 'GET PUT DELETE')),
    'packages': (
        ('/vnf_packages', 'GET POST'),
        ('/vnf_packages/{}', 'GET PATCH DELETE'),
        ('/vnf_packages/{}/package_content', 'GET PUT'),
        ('/vnf_packages/{}/vnfd', 'GET'),
        ('/vnf_packages/{}/artifacts/{...}', 'GET')),
    'lifecycle': (
        ('/api_versions', 'GET'),
        ('/vnf_instances', 'GET POST'),
        ('/vnf_instances/{}', 'GET PATCH DELETE'),
        ('/vnf_instances/{}/instantiate', 'POST'),
        ('/vnf_instances/{}/heal', 'POST'),
        ('/vnf_instances/{}/terminate', 'POST'),
        ('/vnf_instances/{}/scale', 'POST'),
        ('/vnf_instances/{}/change_ext_conn', 'POST'),
        ('/vnf_lcm_op_occs', 'GET'),
        ('/vnf_lcm_op_occs/{}', 'GET'),
        ('/vnf_lcm_op_occs/{}/cancel', 'POST'),
        ('/vnf_lcm_op_occs/{}/fail', 'POST'),
        ('/vnf_lcm_op_occs/{}/retry', 'POST'),
        ('/vnf_lcm_op_occs/{}/rollback', 'POST'),
        ('/subscriptions', 'GET POST'),
        ('/subscriptions/{}', 'GET DELETE'))}
_PLACES = {'{}': r'[^/\s]+', '{...}': r'\S+', '(.json)': r'(?:\.json)?'}
_PLACE = re.compile(r'(\{\}|\{\.\.\.\}|\(\.json\))')


class NotServed(Exception):
    """Why a request does not reach Tacker.

    :param status: of the answer
    """

    def __init__(self, status, reason, allow=None):
        super().__init__(reason)
        self.status = status
        self.headers = {'Allow': allow.replace(' ', ', ')} if allow else {}


def compiled(api):
    """Return the routes of an API as require() takes them."""
    return [(_pattern(path), methods) for path, methods in APIS[api]]


def require(routes, environ):
    """Refuse a request that is on no route, or not on it with its method.

    Tacker's router lets ?_method= overrule the method; then Tacker would do
    something else than what was judged here.

    :raises: NotServed
    """
    if '_method' in environ.get('QUERY_STRING', ''):
        raise NotServed(400, '_method in a query is not served')
    path = environ.get('PATH_INFO', '')
    for pattern, methods in routes:
        if pattern.match(path):
            if environ['REQUEST_METHOD'] not in methods.split():
                raise NotServed(405, 'expected one of: %s' % methods, methods)
            return
    raise NotServed(404, 'no such resource')


def _pattern(path):
    parts = [_PLACES.get(part) or re.escape(part)
             for part in _PLACE.split(path)]
    return re.compile(''.join(parts) + r'/?\Z')
