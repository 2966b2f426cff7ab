# SPDX-License-Identifier: Apache-2.0
"""The tunnel gateway with the kernel's VXLAN as its peer."""

VNI = 1193046
PROPERTIES = {'peer': '10.9.2.9', 'vni': VNI}
INNER = '10.9.1.99'


def _add_tunnel(vnf, name, vni, address):
    """Give the host right an end point of its own."""
    vnf.run('right', 'ip', 'link', 'add', name, 'type', 'vxlan', 'id', vni,
            'remote', vnf.address('vif1'), 'dstport', 4789, 'dev', 'eth0')
    vnf.run('right', 'ip', 'address', 'add', f'{address}/24', 'dev', name)
    vnf.run('right', 'ip', 'link', 'set', name, 'mtu', 1450, 'up')


def check(case, vnf):
    _add_tunnel(vnf, 'tunnel', VNI, INNER)
    vnf.run('left', 'ip', 'link', 'set', 'eth0', 'mtu', 1450)
    capture = vnf.capture('right', 'udp port 4789', 1)
    case.assertEqual(5, vnf.ping('left', INNER))
    text = vnf.wait(capture)
    case.assertIn(f'VXLAN, flags [I] (0x08), vni {VNI}', text)
    case.assertEqual(5, vnf.ping('left', INNER, 5, '-s', 1422, '-M', 'do'))
    case.assertEqual(1, vnf.ping('right', vnf.address('vif1'), 1))
    vnf.serve_http('right', 80)
    vnf.run('left', 'curl', '-sf', f'http://{INNER}/')
    vnf.swap()
    case.assertEqual(5, vnf.ping('left', INNER))
    _check_others(case, vnf)


def _check_others(case, vnf):
    """Another network's frames and those that are too long do not pass."""
    other = vnf.count('other.count')
    _add_tunnel(vnf, 'other', VNI + 1, '10.9.7.99')
    case.assertTrue(vnf.silent('right', '10.9.7.1'))
    vnf.until(lambda: vnf.count('other.count') > other, 'nothing is counted')
    vnf.run('left', 'ip', 'link', 'set', 'eth0', 'mtu', 1500)
    case.assertTrue(vnf.silent('left', INNER, '-s', 1472, '-M', 'do'))
    vnf.until(lambda: vnf.count('too_long.count') == 1, 'nothing is too long')
