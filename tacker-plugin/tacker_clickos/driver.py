# SPDX-License-Identifier: Apache-2.0
"""The infra driver as Tacker loads it: ClickOS' own and Tacker's stock one.

Tacker knows one driver of the VIM type openstack. This one asks for each call
whose VNF it is (vnfds.py).
"""

import functools

from tacker_clickos import infra_driver
from tacker_clickos import reasons
from tacker_clickos import stock
from tacker_clickos import vnfds


class InfraDriver:
    """Calls the driver of the VNF that the arguments name.

    Tacker calls every method with names for all arguments.
    """

    def __init__(self):
        self._ours = infra_driver.ClickOSInfraDriver()
        self._stock = stock.Stock()
        reasons.install()

    def get_type(self):
        return self._ours.get_type()

    def get_name(self):
        return self._ours.get_name()

    def get_description(self):
        return self._ours.get_description()

    def __getattr__(self, name):
        if name.startswith('_') or not hasattr(self._ours, name):
            raise AttributeError(name)
        return functools.partial(self._call, name)

    def _call(self, method, **named):
        vnf_id = _vnf_id(named)
        if vnf_id is None or vnfds.is_ours(vnf_id):
            return getattr(self._ours, method)(**named)
        return self._stock.call(method, named)


def _vnf_id(named):
    """Return the id of the VNF; None in calls about a grant only."""
    vnf = named.get('vnf_instance')
    if vnf is not None:
        return vnf.id
    for name in 'vnf_dict', 'vnf_info':
        if named.get(name):
            return named[name].get('id')
    return named['policy']['vnf']['id'] if 'policy' in named else None
