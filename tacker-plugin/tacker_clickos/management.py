# SPDX-License-Identifier: Apache-2.0
"""Tacker v1 mgmt driver: the live update of a VNF's properties.

An exception that leaves a modify hook makes Tacker 16 keep a row of the VNF
locked until it is restarted. So nothing leaves them: the verdict on an update
is written into the VNF's metadata.
"""

import time

from clickos_client import outcomes
from clickos_client import plain_json
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from tacker.common import coordination
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.mgmt_drivers import vnflcm_noop

from tacker_clickos import clickos_api
from tacker_clickos import conf
from tacker_clickos import database
from tacker_clickos import exception
from tacker_clickos import onboarding
from tacker_clickos import rows
from tacker_clickos import state
from tacker_clickos import update
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos import watch

LOG = logging.getLogger(__name__)

_MAX_SHOWN = 4000
#: Seconds in which an update waits for the database, and between two tries.
_PATIENCE_S = 300
_PAUSE_S = 2


class Management(vnflcm_noop.VnflcmMgmtNoop):
    """The methods of ClickOSMgmtDriver; only tacker-conductor makes one."""

    def __init__(self):
        super().__init__()
        conf.register(cfg.CONF)
        database.wait_for_it()
        onboarding.install()
        watch.start()

    def get_type(self):
        return 'clickos_mgmt'

    def get_name(self):
        return 'clickos_mgmt'

    def get_description(self):
        return 'Live properties of ClickOS VNFs'

    def modify_information_end(self, context, vnf_instance,
                               modify_vnf_request=None, **kwargs):
        """Judge and apply what a tenant put into the metadata.

        Tacker has merged the request into the metadata already. Never raises.
        """
        try:
            self._modify_patiently(context, vnf_instance.id)
        except Exception:
            LOG.exception('VNF %s: the update has no verdict',
                          vnf_instance.id)

    def _modify_patiently(self, context, vnf_id):
        """Begin again as long as the database is away.

        The request stays in the metadata, and to apply it twice is harmless.
        """
        end_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._modify(context, vnf_id)
            except db_exc.DBConnectionError:
                if time.monotonic() > end_s:
                    raise
                LOG.info('VNF %s: the update waits for the database', vnf_id)
            time.sleep(_PAUSE_S)

    @coordination.synchronized('clickos-{vnf_id}')
    def _modify(self, context, vnf_id):
        vnf_instance = objects.VnfInstance.get_by_id(context, vnf_id)
        request = self._request(vnf_instance)
        if request is None:
            return
        verdict = self._judge(context, vnf_instance, request)
        in_force = state.text(state.in_force(vnf_instance))

        def change(metadata, _task_state):
            if metadata.get(state.REQUEST) == request:
                del metadata[state.REQUEST]    # else a newer one waits there
            return dict(metadata, **{state.PROPERTIES: in_force,
                                     state.UPDATE: state.text(verdict)})
        rows.change_metadata(context, vnf_id, change)

    def _judge(self, context, vnf_instance, text):
        """Return the verdict on a request, applied if it is a good one."""
        earlier, wanted = _verdict(vnf_instance), None
        try:
            wanted = update.parse(text)
        except exception.ClickOSError as refused:
            verdict = _failure(refused, earlier, refused.outcome)
        else:
            verdict = self._decide(context, vnf_instance, wanted, earlier)
        if wanted is None or len(text) > _MAX_SHOWN:
            wanted = text[:_MAX_SHOWN]
        return dict(verdict, request=wanted, number=_number(earlier) + 1)

    @staticmethod
    def _request(vnf_instance):
        """Return the text of a request, or None if there is none.

        The API filter marks requests; without it only a changed text shows.
        """
        metadata = vnf_instance.vnf_metadata or {}
        if metadata.get(state.REQUEST):
            return metadata[state.REQUEST]
        sent = metadata.get(state.PROPERTIES)
        if sent == state.text(state.in_force(vnf_instance)):
            return None
        return sent

    def _decide(self, context, vnf_instance, wanted, earlier):
        """Apply the request; return the verdict."""
        try:
            values, revision = self._apply(context, vnf_instance, wanted)
        except exception.ClickOSError as refused:
            return _failure(refused, earlier, refused.outcome)
        except db_exc.DBConnectionError:
            raise
        except Exception:
            LOG.exception('VNF %s: the update failed', vnf_instance.id)
            return _failure(outcomes.message('interrupted'), earlier,
                            outcomes.UNKNOWN)
        state.set_param(vnf_instance.instantiated_vnf_info, state.PROPERTIES,
                        values)
        vnf_instance.save()
        return {'verdict': 'accepted', 'message': '', 'revision': revision}

    @staticmethod
    def _apply(context, vnf_instance, wanted):
        info = vnf_instance.instantiated_vnf_info
        vdus = loader.load(
            vnflcm_utils.get_vnf_package_path(context, vnf_instance.vnfd_id),
            info.flavour_id).vdus
        access_info = vnflcm_utils.get_vim(
            context, vnf_instance.vim_connection_info)['access_info']
        change = update.Update(vdus, info, state.in_force(vnf_instance),
                               wanted)
        return change.apply(clickos_api.Client(vim.connect(access_info)),
                            vnf_instance.id)


def _verdict(vnf_instance):
    """Return the last verdict; a tenant may have written anything there."""
    try:
        found = plain_json.loads(
            (vnf_instance.vnf_metadata or {}).get(state.UPDATE) or '{}')
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _number(verdict):
    """Return the number of a verdict; it tells a new one from the last."""
    number = verdict.get('number')
    return number if type(number) is int else 0


def _failure(reason, earlier, outcome):
    return {'verdict': outcome, 'message': str(reason)[:_MAX_SHOWN],
            'revision': earlier.get('revision', 0)}
