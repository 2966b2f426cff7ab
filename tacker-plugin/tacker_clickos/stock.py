# SPDX-License-Identifier: Apache-2.0
"""Tacker's stock OpenStack driver, for VNFs that are not ClickOS'.

The operator allows it (docs/adr/0118-stock-driver.md). The stock driver
trusts its callers. So this module judges the requests, gives it texts that
read back as they were, bounds what it waits for, and keeps addresses out of
the reasons that tenants see.
"""

import collections
import contextlib
import functools
import json
import os
import threading

from clickos_client import host_text
from oslo_config import cfg
from oslo_log import log as logging
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import exception
from tacker_clickos import reasons
from tacker_clickos import threads
from tacker_clickos import urls

LOG = logging.getLogger(__name__)

#: Seconds for which a member may let the conductor wait before it terminates.
MAX_GRACE_S = 60
#: Parts of the conductor's threads that the operations of all have, and
#: those of a project. An operation holds a thread while Heat works.
_OF_ALL, _OF_PROJECT = 2, 4
#: What begins an operation, before it changes anything.
_BEGIN = ('pre_instantiation_vnf', 'heal_vnf', 'scale', 'scale_in_reverse',
          'scale_out_initial', 'change_ext_conn_vnf')


def is_allowed():
    """Return whether the operator lets the stock driver have VNFs."""
    return cfg.CONF.clickos.stock_driver


def judge(vnf_id, operation, body):
    """Refuse what the stock driver must not do.

    :param operation: the last word of the path
    :raises: RequestRefused
    """
    if operation == 'instantiate':
        _require_allowed(vnf_id)
    grace_s = body.get('gracefulTerminationTimeout')
    if isinstance(grace_s, (int, float)) and grace_s > MAX_GRACE_S:
        raise exception.RequestRefused(
            reason='gracefulTerminationTimeout: %d s, the limit is %d'
            % (grace_s, MAX_GRACE_S))


def _require_allowed(vnf_id):
    if not is_allowed():
        raise exception.RequestRefused(
            reason="VNF %s: its package uses no type of ClickOS, and Tacker's"
            ' stock driver is off ([clickos] stock_driver)' % vnf_id)


class Stock:
    """The stock driver, guarded."""

    def __init__(self):
        self._lock = threading.Lock()
        self._busy = collections.Counter()

    def call(self, method, named):
        """Call a method of the driver.

        :param named: its arguments
        :raises: TackerException, without an address in its text
        """
        self._prepare(method, named)
        project_id = getattr(named.get('context'), 'project_id', None)
        with self._turn(method, project_id), _without_places():
            return getattr(_driver(), method)(**named)

    @staticmethod
    def _prepare(method, named):
        vnf = named.get('vnf_instance')
        connection = named.get('vim_connection_info')
        access = connection.access_info if connection is not None \
            else named.get('auth_attr')
        if access:
            # The VIM may be older than the operator's list.
            urls.require('auth_url of the VIM', access.get('auth_url'))
        if method == 'pre_instantiation_vnf' and vnf.instantiation_state \
                != fields.VnfInstanceState.INSTANTIATED:
            _require_allowed(vnf.id)
        if method == 'pre_instantiation_vnf':
            _require_images(named)
        if method == 'instantiate_vnf':
            _write_plainly(named)
        request = named.get('terminate_vnf_req')
        if request is not None and request.graceful_termination_timeout:
            request.graceful_termination_timeout = min(
                request.graceful_termination_timeout, MAX_GRACE_S)

    @contextlib.contextmanager
    def _turn(self, method, project_id):
        of_project, of_all = _limits()
        with self._lock:
            if method in _BEGIN and (self._busy[project_id] >= of_project
                                     or self._busy.total() >= of_all):
                raise exception.Busy(
                    reason='%d operations of VNFs of the stock driver run, '
                    'the limit is %d for a project and %d for all; retry '
                    'later' % (self._busy.total(), of_project, of_all))
            self._busy[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[project_id] -= 1
                self._busy += collections.Counter()    # without zeros


def _limits():
    """Return the numbers of operations of a project, and of all."""
    total = threads.total()
    return max(1, total // _OF_PROJECT), max(1, total // _OF_ALL)


@functools.cache
def _driver():
    """Return the driver; its import needs half a second.

    It puts files of the conductor into a template that names them, and a
    template is made of texts of the VNFD. No VNFD needs that.
    """
    from tacker.tosca import utils as tosca_utils
    from tacker.vnfm.infra_drivers.openstack import openstack
    tosca_utils.open = _no_file
    return openstack.OpenStack()


def _no_file(path, *_mode):
    raise exception.StockFailed(
        reason='get_file %.200s: the conductor reads no file for a template'
        % path)


def _require_images(named):
    """Refuse an image that is no file of the package.

    The driver uploads it to a project of the tenant.
    """
    top = os.path.realpath(named['vnf_package_path']) + os.sep
    for image in named['vnf_software_images'].values():
        if not os.path.realpath(image.image_path).startswith(top):
            raise exception.StockFailed(
                reason='image %.200s: its file is not in the package'
                % image.name)


def _write_plainly(named):
    """Write the VNFD and the parameters so that they read back as they are.

    Tacker gives both to YAML's parser as Python prints them. A text with both
    quotation marks ends too early there, so its rest could be an import of
    any URL that no review has seen. JSON reads back as it was.
    """
    context, vnf = named['context'], named['vnf_instance']
    request, final = named['instantiate_vnf_req'], named['vnfd_dict']
    vnfd = vnflcm_utils.get_vnfd_dict(context, vnf.vnfd_id,
                                      request.flavour_id)
    parameters = vnflcm_utils._get_param_data(vnfd, request)
    final['vnfd']['attributes']['vnfd'] = _text(vnfd)
    final['attributes']['param_values'] = _text(parameters)


def _text(value):
    return json.dumps(value, default=str, ensure_ascii=False)


@contextlib.contextmanager
def _without_places():
    """Let only words reach the tenant; the log has the whole error."""
    try:
        yield
    except exception.ClickOSError:
        raise
    except Exception as error:
        # It may quote megabytes of a request.
        text = str(error)[:host_text.MAX_SHOWN]
        LOG.warning('the stock driver failed: %s: %r', type(error).__name__,
                    text)
        raise exception.StockFailed(
            reason=reasons.for_tenants(error)) from error
