// SPDX-License-Identifier: Apache-2.0
// Checks typed properties while one types; the services check them again.
(function () {
  'use strict';
  const OCTET = '(25[0-5]|2[0-4]\\d|1?\\d?\\d)';
  const V4 = OCTET + '(\\.' + OCTET + '){3}';
  const V6 = '(?=.*:)[0-9A-Fa-f:]{2,39}(' + V4 + ')?';
  const PORT = '(6553[0-5]|655[0-2]\\d|65[0-4]\\d\\d|6[0-4]\\d{3}|' +
    '[1-5]\\d{4}|\\d{1,4})';
  const FORMS = {
    ipv4: [V4, 'an IPv4 address such as 10.0.0.1'],
    ip: [V4 + '|' + V6, 'an address such as 10.0.0.1 or 2001:db8::1'],
    ipv4_prefix: [V4 + '/(3[0-2]|[12]?\\d)', 'a network such as 10.0.0.0/24'],
    ipv6: [V6, 'an IPv6 address such as 2001:db8::1'],
    ipv6_prefix: [V6 + '/(12[0-8]|1[01]\\d|\\d?\\d)',
                  'a network such as 2001:db8::/64'],
    mac: ['[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}', 'a MAC address'],
    integer: ['\\d{1,10}', 'a whole number'],
    port: [PORT, 'a port from 0 to 65535'],
    port_range: [PORT + '-' + PORT, 'ports such as 1024-65535'],
    rate: ['\\d{1,15}(\\.\\d{1,6})? ?([kKMGT]i?)?(bps|Bps|pps)?',
           'a rate such as 10 Mbps'],
    secret: ['clickos-secret:[0-9a-f-]{36}',
             'a reference such as clickos-secret:UUID'],
    filter_rules: ['(allow|deny|drop)( .*)?',
                   'a rule such as "allow tcp dst port 80"'],
    inspection_rules: ['((alert|drop|pass|var|ipvar|portvar) .*|#.*)',
                       'a rule such as "drop tcp any any -> any 80 (...)"']
  };

  // Kinds with several values, each of either family.
  const EITHER = {
    addresses: [['ipv4', 'ipv6'],
                'an address such as 10.0.0.5 or 2001:db8::5'],
    prefixes: [['ipv4_prefix', 'ipv6_prefix'],
               'a network such as 10.20.0.0/24 or 2001:db8::/64']
  };

  // Says what is wrong with a text; nothing if it is right.
  function fault(kind, text) {
    const form = FORMS[kind];
    if (!form || new RegExp('^(' + form[0] + ')$').test(text)) {
      return '';
    }
    return 'expected ' + form[1];
  }

  function ofSeveral(kind, text) {
    const [kinds, expected] = EITHER[kind];
    for (const part of text.split(/[\s,]+/).filter(Boolean)) {
      if (kinds.every(function (each) { return fault(each, part); })) {
        return part.slice(0, 64) + ': expected ' + expected;
      }
    }
    return '';
  }

  function ofField(field) {
    const kind = field.dataset.clickosType;
    if (Object.hasOwn(EITHER, kind)) {
      return ofSeveral(kind, field.value);
    }
    if (kind.startsWith('lines ')) {
      const lines = field.value.split('\n');
      for (let i = 0; i < lines.length; i += 1) {
        const text = lines[i].trim();
        const found = text && fault(kind.slice(6), text);
        if (found) {
          return 'line ' + (i + 1) + ': ' + found;
        }
      }
      return '';
    }
    const text = field.value.trim();
    if (kind === 'json' && text) {
      try {
        JSON.parse(text);
      } catch (problem) {
        return 'expected JSON: ' + problem.message;
      }
    }
    return text && fault(kind, text);
  }

  function note(field) {
    const id = field.id + '-fault';
    let place = document.getElementById(id);
    if (!place) {
      place = document.createElement('span');
      place.id = id;
      place.className = 'help-block text-danger';
      place.setAttribute('role', 'status');
      field.after(place);
      const more = field.getAttribute('aria-describedby');
      field.setAttribute('aria-describedby', more ? more + ' ' + id : id);
    }
    return place;
  }

  document.addEventListener('input', function (event) {
    const field = event.target;
    if (!field.dataset || !field.dataset.clickosType) {
      return;
    }
    const found = ofField(field);
    note(field).textContent = found;
    field.setAttribute('aria-invalid', String(Boolean(found)));
  });
}());
