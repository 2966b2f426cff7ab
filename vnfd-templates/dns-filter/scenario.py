# SPDX-License-Identifier: Apache-2.0
"""The DNS filter with dig and dnsmasq as judges."""

SHARED_NETWORK = True


def _words(vnf, name, *more):
    return ('dig', '+short', '+tries=1', f'@{vnf.address("right")}', name,
            *more)


def _dig(vnf, name):
    """Return the answer about a name that is not blocked."""
    return vnf.run('left', *_words(vnf, name, '+time=20')).strip()


def _check_blocked(case, vnf, name, *more):
    """The filter drops a question, and no answer comes."""
    dropped = vnf.count('dropped.count')
    client = vnf.start('left', *_words(vnf, name, '+time=3', *more))
    vnf.until(lambda: vnf.count('dropped.count') > dropped, 'nothing dropped')
    case.assertNotIn('192.0.2.1', vnf.wait(client))


def check(case, vnf):
    vnf.serve('right', 53, 'dnsmasq', '--no-daemon', '--no-resolv',
              '--no-hosts', '--address=/#/192.0.2.1', '--user=root',
              '--pid-file', udp=True)
    case.assertEqual('192.0.2.1', _dig(vnf, 'good.example'))
    _check_blocked(case, vnf, 'www.blocked.invalid')
    _check_blocked(case, vnf, 'blocked.invalid', '+tcp')
    vnf.swap()
    vnf.control.write('blocked.config', r'"\<04>good\<07>example"')
    _check_blocked(case, vnf, 'good.example')
    case.assertEqual('192.0.2.1', _dig(vnf, 'blocked.invalid'))
