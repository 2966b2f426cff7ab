# SPDX-License-Identifier: Apache-2.0
"""The guests of the Xen host, and what of them may be left behind."""

import json
import time

from clickos_lab.config import hosts
from clickos_lab.host import listed
from clickos_lab.xen import compute

#: What there is of domains besides dom0, a line each: kind and number. A
#: domain that was destroyed is in Xen's list until all its pages are free.
#: Names have spaces, so the number is the fifth word from the end. cosmosd
#: keeps domains called "pool UUID" for the next guests.
_LOOK = """\
xl list | awk 'NR > 1 && $(NF - 4) > 0 { print "domain", $(NF - 4) }'
xl list | awk 'NR > 1 && $1 == "pool" { print "pool", $(NF - 4) }'
for path in /local/domain /local/domain/0/backend/vale; do
    xenstore-list $path 2>/dev/null | awk -v p="$path" '$1 > 0 { print p, $1 }'
done
"""

#: for guests that are made or removed, on an emulated host
_LEFT_S = 40


class Domains(listed.Listed):
    """Guests as cosmosd, valed and Xen know them."""

    def __init__(self, state, host=hosts.XEN):
        self._xen = compute.XenCompute(state, host)

    def cosmos(self, *arguments):
        return self._xen.run('cosmos', *arguments)

    def system(self):
        version, patches = self._xen.xen()
        listed_ = ''.join(f'\n    {name}' for name in patches)
        return f'domains of Xen {version}' + (
            f', tools and netback with our patches:{listed_}' if patches
            else ' without our patches')

    def identity(self, server_id):
        """Return what no two boots of a guest have in common."""
        guest = self.find(server_id)
        return guest['domid'], guest['created_s']

    def seen(self, domid):
        """Tell how Xen, not cosmosd, sees a domain: a line of xl."""
        line = self._xen.dom0.check(f'xl list {domid} | tail -n 1')
        return f'xl list: {" ".join(line.split())}'

    def kill(self, server_id):
        """Destroy a guest's domain behind cosmosd's back."""
        domid = self.find(server_id)['domid']
        self._xen.dom0.check(f'xl destroy {domid}')

    def hang(self, server_id):
        """Let a guest answer nothing: pause its domain behind cosmosd's back.
        """
        domid = self.find(server_id)['domid']
        self._xen.dom0.check(f'xl pause {domid}')

    def leftovers(self, server_id):
        """List the traces of a server, and of guests cosmosd does not know.

        A guest that is made or removed now is known at one place before the
        other, so what is left is found again for some time.
        """
        deadline_s = time.monotonic() + _LEFT_S
        while True:
            own, found = self._traces(server_id)
            if own or not found or time.monotonic() > deadline_s:
                return [*own, *found]
            time.sleep(1)

    def _traces(self, server_id):
        """Return what a server has, and what no server has."""
        others = self.listed()
        own = others.pop(server_id, None)
        domids = {guest['domid'] for guest in others.values()}
        ports = {vif['port'] for guest in others.values()
                 for vif in guest['vifs']}
        lines = [line.split()
                 for line in self._xen.dom0.check(_LOOK).splitlines()]
        pooled = {int(domid) for kind, domid in lines if kind == 'pool'}
        found = [f'{kind} {domid}' for kind, domid in lines
                 if kind != 'pool' and int(domid) not in domids | pooled]
        found += [f'switch port {port}' for port in self._guest_ports()
                  if port not in ports]
        return [f'guest {server_id}'] if own else [], found

    def _guest_ports(self):
        ports = json.loads(self._xen.run('vale-ctl', '-o', 'json', 'ports'))
        return [port['port'] for port in ports if port['kind'] == 'xen']
