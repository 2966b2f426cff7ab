# SPDX-License-Identifier: Apache-2.0
"""The source's side of a live migration.

The two guests never run at once. If the target does not say that it has the
guest, and does not say that it has not, the guest stays halted here.
"""

import time

from cosmos_client import CosmosError
from oslo_log import log as logging

from nova_clickos.migration import channel
from nova_clickos.migration import element_state

LOG = logging.getLogger(__name__)

#: Seconds for an answer of the target.
_PATIENCE_S = 30


class Stayed(Exception):
    """The guest did not move, and continues here."""


class Lost(Exception):
    """The guest is halted here, and may run on the target."""


def move(client, uuid, invitation, own, is_aborted=lambda: False):
    """Move a guest to the target that made the invitation; destroy it here.

    :param own: Identity that the target expects
    :param is_aborted: says that it shall stay; asked until the commit
    :raises: Stayed, Lost
    """
    session = target = None
    try:
        session = client.session()
        target = channel.connect(invitation, own, _PATIENCE_S)
        _move(session, target, uuid, is_aborted)
    except (CosmosError, channel.ChannelError) as e:
        # cosmosd lets the routers run again when the session ends.
        raise Stayed(str(e))
    finally:
        for end in (target, session):
            if end is not None:
                end.close()


def _move(session, target, uuid, is_aborted):
    # The target prepares what does not change while the guest runs on.
    routers = session.call('router-list', uuid=uuid)['routers']
    target.send({'routers': element_state.read(session, uuid, routers)})
    _answer(target, 'installed')
    _go_on_unless(is_aborted)
    began_s = time.monotonic()
    halted = session.call('migrate-begin', uuid=uuid,
                          timeout_ms=element_state.GUEST_MS)
    halted_routers = element_state.read(session, uuid, halted['routers'])
    target.send({'routers': halted_routers,
                 'changes': halted['changes']})
    _answer(target, 'complete')
    _go_on_unless(is_aborted)
    session.call('migrate-commit', uuid=uuid)
    try:
        target.send({'arrive': True})
        _answer(target, 'arrived')
    except _Refused as e:
        session.call('migrate-cancel', uuid=uuid,
                     timeout_ms=element_state.GUEST_MS)
        raise Stayed(str(e))
    except channel.ChannelError as e:
        raise Lost('the target may have the guest: %s; if it has, destroy it '
                   'here, else start it here' % e)
    LOG.info('Guest %(uuid)s runs on the other host, after %(ms)d ms of '
             'silence', {'uuid': uuid,
                         'ms': 1000 * (time.monotonic() - began_s)})
    try:
        session.call('destroy', uuid=uuid)
    except CosmosError as e:
        # Its routers are halted, and Nova destroys it again.
        LOG.warning('Guest %(uuid)s has moved, and is not destroyed here: '
                    '%(why)s', {'uuid': uuid, 'why': e})


def _go_on_unless(is_aborted):
    if is_aborted():
        # The target undoes its guest when the connection ends.
        raise Stayed('the migration is aborted')


class _Refused(channel.ChannelError):
    """The target says that it has no guest."""


def _answer(target, wanted):
    answer = target.receive(_PATIENCE_S)
    if answer.get(wanted) is True:
        return
    raise _Refused('the target answers: %.200s' % (answer.get('error')
                                                   or answer))
