# SPDX-License-Identifier: Apache-2.0
"""Every route for every role: one table of callers and answers."""

import uuid

from clickos_api.http import operation as operations

from tests.unit.clickos_api import base

# Keystone implies the lower roles.
READER = ('reader',)
MEMBER = ('member', *READER)
MANAGER = ('manager', *MEMBER)
ADMIN = ('admin', *MANAGER)

WRITE = {'json': {'value': 'allow'}}
WRITES = {'json': {'writes': [['fw.config', 'allow']]}}
CONFIG = {'json': {'config': 'Idle;'}}
# A guest of the same project; base.py has no further one.
FLOWS = {'json': {'to': ['99999999-2222-4333-8444-555555555555']}}

# method, path after the server or VNF, body
OPERATIONS = (('GET', '/ports', {}),
              ('GET', '/events', {}),
              ('GET', '/handlers', {}),
              ('GET', '/handlers/fw.config', {}),
              ('PUT', '/handlers/fw.config', WRITE),
              ('POST', '/handlers', WRITES),
              ('PUT', '/configuration', CONFIG),
              ('GET', '/desired-state', {}),
              ('DELETE', '/desired-state', {}),
              ('GET', '/changes', {}),
              ('GET', '/changes/7', {}),
              ('POST', '/desired-state', {'json': {'revision': 9}}),
              ('POST', '/flows', FLOWS),
              ('POST', '/reads', {'json': {'names': ['fw.config']}}))

# caller: project, roles, whether Nova and Tacker show the guest, and the
# status of each operation on a server. Nova hides servers of other projects
# (404) from all but its administrators.
CALLERS = {
    'no role': ('own', (), True,
                (403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403,
                 403, 403, 403)),
    'reader': ('own', READER, True,
               (200, 200, 200, 200, 403, 403, 403, 200, 403, 200, 404,
                403, 403, 200)),
    'member': ('own', MEMBER, True,
               (200, 200, 200, 200, 200, 200, 200, 200, 204, 200, 404,
                404, 404, 200)),
    'manager': ('own', MANAGER, True,
                (200, 200, 200, 200, 200, 200, 200, 200, 204, 200, 404,
                 404, 404, 200)),
    'admin': ('own', ADMIN, True,
              (200, 200, 200, 200, 200, 200, 200, 200, 204, 200, 404,
               404, 404, 200)),
    'member elsewhere':
        ('other', MEMBER, False,
         (404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404,
          404)),
    'manager elsewhere':
        ('other', MANAGER, False,
         (404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404,
          404)),
    'admin elsewhere':
        ('other', ADMIN, True,
         (403, 403, 403, 403, 403, 403, 403, 200, 204, 403, 403, 403, 403,
          403)),
    'service':
        ('other', ('service',), False,
         (404, 404, 404, 404, 404, 404, 404, 200, 404, 404, 404, 404, 404,
          404)),
}
# A service may read the state of a server only: Tacker hides the VNF.
# The configuration of a VNF belongs to its descriptor.
VNF_EXCEPTIONS = {('service', 'GET', '/desired-state'): 404,
                  **{(caller, 'PUT', '/configuration'): 409
                     for caller in ('member', 'manager', 'admin')}}


class RbacTest(base.TestCase):
    """The default policy, route by route and role by role."""

    def test_the_table_has_every_route(self):
        served = {(each.method, each.path) for each in operations.OPERATIONS
                  if each.kind == operations.GUESTS}
        table = {(method, suffix.replace('fw.config', '{name}').replace(
                     '/7', '/{number}'))
                 for method, suffix, _ in OPERATIONS}
        self.assertEqual(table, served)

    def test_servers(self):
        for caller, operation, status in self._cases():
            with self.subTest(caller=caller, operation=operation[:2]):
                self._check(caller, f'/v1/servers/{self.server_id}',
                            operation, status)

    def test_vnfs(self):
        vnf_id = str(uuid.uuid4())
        self.cloud.add_vnf(vnf_id, self.project_id,
                           [(self.server_id, 'fw', 'vnfc1')])
        for caller, operation, status in self._cases():
            with self.subTest(caller=caller, operation=operation[:2]):
                self._check(caller, f'/v1/vnfs/{vnf_id}', operation,
                            VNF_EXCEPTIONS.get((caller, *operation[:2]),
                                               status))

    def _cases(self):
        for caller, (_, _, _, statuses) in CALLERS.items():
            for operation, status in zip(OPERATIONS, statuses, strict=True):
                yield caller, operation, status

    def _check(self, caller, path, operation, status):
        """Send one request; a refused write leaves the guest as it is."""
        method, suffix, body = operation
        guest = self.agent.guests[self.server_id] = {'fw.config': 'deny all'}
        answer = self.call(method, path + suffix, self._token(caller), **body)
        self.assertEqual(status, answer[0], answer[1])
        written = status == 200 and suffix.startswith('/handlers') \
            and method in ('PUT', 'POST')
        self.assertEqual('allow' if written else 'deny all',
                         guest['fw.config'])

    def _token(self, caller):
        project, roles, shown, _ = CALLERS[caller]
        token = self.caller(
            self.project_id if project == 'own' else uuid.uuid4().hex, *roles)
        if shown:
            self.cloud.projects[token] = self.project_id
        return token
