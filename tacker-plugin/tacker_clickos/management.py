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
from tooz import coordination as tooz_coordination

from tacker_clickos import clickos_api
from tacker_clickos import conf
from tacker_clickos import database
from tacker_clickos import exception
from tacker_clickos import onboarding
from tacker_clickos import state
from tacker_clickos import tacker_db
from tacker_clickos import threads
from tacker_clickos import update
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos import watch

LOG = logging.getLogger(__name__)

_MAX_SHOWN = 4000
#: Seconds in which an update waits for the database, and between two tries.
_PATIENCE_S = 300
_PAUSE_S = 2
#: Seconds in which an update waits for another one of its VNF.
_LOCK_S = 5
_BUSY = ('VNF %s: another update still waits for its guests after %d s; '
         'update again when it has its verdict')


class Management(vnflcm_noop.VnflcmMgmtNoop):
    """The methods of ClickOSMgmtDriver; only tacker-conductor makes one."""

    def __init__(self):
        super().__init__()
        conf.register(cfg.CONF)
        database.wait_for_it()
        onboarding.install()
        threads.install()
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
                return self._modify_or_refuse(context, vnf_id)
            except db_exc.DBConnectionError:
                if time.monotonic() > end_s:
                    raise
                LOG.info('VNF %s: the update waits for the database', vnf_id)
            time.sleep(_PAUSE_S)

    def _modify_or_refuse(self, context, vnf_id):
        try:
            self._modify(context, vnf_id)
        except tooz_coordination.LockAcquireFailed:
            _refuse(context, vnf_id)

    @coordination.synchronized('clickos-{vnf_id}', blocking=_LOCK_S)
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
            return dict(_with_verdict(metadata, verdict),
                        **{state.PROPERTIES: in_force})
        tacker_db.change_metadata(context, vnf_id, change)

    def _judge(self, context, vnf_instance, text):
        """Return the verdict on a request, applied if it is a good one."""
        earlier, wanted = _verdict(vnf_instance.vnf_metadata), None
        try:
            wanted = update.parse(text)
        except exception.ClickOSError as refused:
            verdict = _failure(refused, earlier, refused.outcome)
        else:
            verdict = self._decide(context, vnf_instance, wanted, earlier)
        if wanted is None or len(text) > _MAX_SHOWN:
            wanted = text[:_MAX_SHOWN]
        return dict(verdict, request=wanted)

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


def _refuse(context, vnf_id):
    """Refuse the request in the metadata: another update holds the VNF.

    That one may be of another conductor, and waits for its guests.
    """
    def change(metadata, _task_state):
        request = metadata.pop(state.REQUEST, None)
        if request is None:
            return None
        verdict = _failure(_BUSY % (vnf_id, _LOCK_S), _verdict(metadata),
                           outcomes.REFUSED)
        return _with_verdict(metadata, dict(verdict,
                                            request=request[:_MAX_SHOWN]))
    LOG.info('VNF %s: an update is refused, another one runs', vnf_id)
    tacker_db.change_metadata(context, vnf_id, change)


def _with_verdict(metadata, verdict):
    """Return metadata with the next verdict."""
    return dict(metadata, **{state.UPDATE: state.text(
        dict(verdict, number=_number(_verdict(metadata)) + 1))})


def _verdict(metadata):
    """Return the last verdict; a tenant may have written anything there."""
    try:
        found = plain_json.loads((metadata or {}).get(state.UPDATE) or '{}')
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
