# SPDX-License-Identifier: Apache-2.0
"""The Python module on a real host: ``test_cosmos.py IMAGE``, in dom0."""

import sys

import cosmos

_COUNT = b'InfiniteSource(LIMIT 7) -> c :: Counter -> Discard;'
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
    """What is wrong raises, with the library's words."""
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
        cosmos.router_install(host, domid, 0, _COUNT, 'c.click', _WAIT_MS)
        words = refused(cosmos.REFUSED, cosmos.router_install, host, domid, 0,
                        b'a :: Nonesuch;', 'bad.click', _WAIT_MS)
        assert words.startswith('bad.click:1:'), words
        count = cosmos.handler_read(host, domid, 0, 'c.count', _WAIT_MS)
        assert count.strip() == '7', count
        cosmos.handler_write(host, domid, 0, 'c.reset', '', _WAIT_MS)
        assert cosmos.request(host, domid, 0, b'read c.count',
                              _WAIT_MS).strip() == b'0'
        assert 'c.count r' in cosmos.handler_list(host, domid, 0, _WAIT_MS)
    finally:
        cosmos.domain_destroy(host, domid)


def main(path):
    """Run all of it."""
    with open(path, 'rb') as f:
        image = f.read()
    host = cosmos.open_host()
    assert cosmos.host_info(host).cpus >= 1
    events = cosmos.events_open()
    refusals(host, image)
    guest(host, image)
    assert cosmos.events_next(events, _WAIT_MS).kind == cosmos.DOMAINS
    cosmos.events_close(events)
    cosmos.close(host)
    print('ok')


main(sys.argv[1])
