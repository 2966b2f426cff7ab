# SPDX-License-Identifier: Apache-2.0
"""The Python module on a real host: ``test_cosmos.py IMAGE``, in dom0."""

import sys

import cosmos

_WAIT_MS = 20000


def refused(code, call, *args):
    """Expect a call to fail with a code; return its message."""
    try:
        call(*args)
    except cosmos.Error as e:
        assert e.args[0] == code, e
        return e.args[1]
    raise AssertionError('%s was not refused' % call.__name__)


def refusals(host, image):
    """A wrong call raises, with the library's words."""
    args = (host, cosmos.PVH, 'bindings', b'\1' * 16, image)
    assert 'uuid' in refused(cosmos.INVALID, cosmos.domain_create, *args[:3],
                             b'short', image, 8192)
    assert 'memory' in refused(cosmos.INVALID, cosmos.domain_create, *args, 0)
    refused(cosmos.BAD_IMAGE, cosmos.domain_create, *args[:4], b'x' * 999,
            8192)
    refused(cosmos.NOT_FOUND, cosmos.domain_info, host, 31999)


def guest(host, image):
    """A guest's life; every result comes back as a value."""
    domid = cosmos.domain_create(host, cosmos.PVH, 'bindings', b'\1' * 16,
                                 image, 8192)
    try:
        cosmos.vale_add(host, domid, 0, b'\2\0\0\0\0\1', 1500, 64)
        info = cosmos.domain_info(host, domid)
        assert (info.name, info.state) == ('bindings', cosmos.PAUSED)
        assert domid in [i.domid for i in cosmos.domain_list(host)]
        cosmos.vale_remove(host, domid, 0)
        cosmos.domain_unpause(host, domid)
        cosmos.domain_pause(host, domid)
        assert cosmos.domain_info(host, domid).state == cosmos.PAUSED
    finally:
        cosmos.domain_destroy(host, domid)


def main(path):
    """Run all tests."""
    with open(path, 'rb') as f:
        image = f.read()
    host = cosmos.open_host()
    assert cosmos.host_info(host).cpus >= 1
    events = cosmos.events_open()
    cosmos.events_next(events, _WAIT_MS)    # the watch's first
    refusals(host, image)
    guest(host, image)
    cosmos.events_next(events, _WAIT_MS)
    cosmos.events_close(events)
    cosmos.close(host)
    print('ok')


main(sys.argv[1])
