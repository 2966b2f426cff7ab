# SPDX-License-Identifier: Apache-2.0
"""The IPS with curl as attacker."""

import json

SHARED_NETWORK = True
PROPERTIES = {'syslog': {'address': '10.9.1.10'}}
_ALERT = 'alert tcp any any -> any 80 (msg:"%s"; content:"%s"; sid:%d;)'


def check(case, vnf):
    server = f'http://{vnf.address("right")}'
    attack = ('curl', '-s', f'{server}/?f=/etc/passwd')
    vnf.serve_http('right', 80)
    messages = vnf.serve_syslog('right')
    vnf.run('left', 'curl', '-sf', f'{server}/')
    case.assertEqual(0, vnf.count('ips.alert_count'))
    _check_dropped(case, vnf, attack)
    vnf.swap()
    _check_dropped(case, vnf, attack)
    vnf.control.write('ips.action', 'alert')
    before = vnf.count('ips.alert_count')
    vnf.run('left', *attack)
    alerts = vnf.count('ips.alert_count')
    case.assertGreater(alerts, before)
    vnf.control.write('ips.rules', _ALERT % ('harmless', 'harmless', 7))
    vnf.run('left', *attack)
    case.assertEqual(alerts, vnf.count('ips.alert_count'))
    vnf.run('left', 'curl', '-s', f'{server}/?f=harmless')
    vnf.until(lambda: '"signature_id":7' in messages.read_text(),
              'no message about an alert')
    *_, line = messages.read_text().splitlines()
    priority, host, name, kind, text = line.split(maxsplit=4)
    case.assertEqual(('132', vnf.address('vif1'), 'ips', 'alert', 7),
                     (priority, host, name, kind,
                      json.loads(text)['alert']['signature_id']))
    newest = json.loads(vnf.control.read('ips.alerts').splitlines()[-1])
    case.assertEqual(('allowed', 7), (newest['alert']['action'],
                                      newest['alert']['signature_id']))


def _check_dropped(case, vnf, attack):
    alerts = vnf.count('ips.alert_count')
    client = vnf.start('left', *attack, '--max-time', '3')
    vnf.until(lambda: vnf.count('ips.alert_count') > alerts, 'no alert')
    vnf.wait(client)
    case.assertNotEqual(0, client.returncode, 'a signature passes')
