# SPDX-License-Identifier: Apache-2.0
"""The DNS filter with dig and dnsmasq as judges."""

SHARED_NETWORK = True


def _dig(vnf, name, *more):
    return vnf.printed('left', 'dig', '+short', '+tries=1', '+time=1', *more,
                       f'@{vnf.address("right")}', name).strip()


def check(case, vnf):
    vnf.serve('right', 53, 'dnsmasq', '--no-daemon', '--no-resolv',
              '--no-hosts', '--address=/#/192.0.2.1', '--user=root',
              '--pid-file', udp=True)
    case.assertEqual('192.0.2.1', _dig(vnf, 'good.example'))
    case.assertNotEqual('192.0.2.1', _dig(vnf, 'www.blocked.invalid'))
    case.assertNotEqual('192.0.2.1', _dig(vnf, 'blocked.invalid', '+tcp'))
    case.assertGreaterEqual(vnf.count('dropped.count'), 2)
    vnf.swap()
    vnf.control.write('blocked.config', r'"\<04>good\<07>example"')
    case.assertNotEqual('192.0.2.1', _dig(vnf, 'good.example'))
    case.assertEqual('192.0.2.1', _dig(vnf, 'blocked.invalid'))
