// SPDX-License-Identifier: Apache-2.0
// What the live pages share: asking for counters, and rates of two answers.
window.clickos = (function () {
  'use strict';

  // Returns a number as people read rates: 950, 1.2 k, 13 Mbit/s.
  function si(number, word = '') {
    const units = word ? [' ', ' k', ' M', ' G', ' T'] :
      ['', ' k', ' M', ' G', ' T'];
    let unit = 0;
    while (number >= 999.5 && unit < units.length - 1) {
      number /= 1000;
      unit += 1;
    }
    return (number < 99.5 ? Number(number.toPrecision(3))
                          : Math.round(number)) + units[unit] + word;
  }

  // Returns the JSON of an address; an answer with an error raises it.
  async function ask(url) {
    const answer = await fetch(url, {
      credentials: 'same-origin',
      headers: {'X-Requested-With': 'XMLHttpRequest'}
    });
    const body = await answer.json();
    if (body.error) {
      throw new Error(body.error);
    }
    return body;
  }

  // Does work() again and again while the page is seen, one at a time.
  // work() returns the milliseconds until the next time.
  function repeat(place, everyMs, work) {
    async function turn() {
      const error = document.getElementById(place);
      let next = everyMs;
      if (!document.hidden) {
        try {
          next = await work() || everyMs;
          if (error) {
            error.textContent = '';
          }
        } catch (problem) {
          if (error) {
            error.textContent = problem.message || String(problem);
          }
        }
      }
      setTimeout(turn, next);
    }
    turn();
  }

  // Remembers the counters of each key; returns rates since the last ones.
  // A counter that fell began again, so it has no rate this time.
  function Meter() {
    const before = new Map();
    this.rates = function (key, atMs, counts) {
      const old = before.get(key);
      before.set(key, {atMs: atMs, counts: counts});
      const names = Object.keys(counts);
      if (!old || atMs <= old.atMs || names.some(function (name) {
        return !(counts[name] >= old.counts[name]);
      })) {
        return null;
      }
      const seconds = (atMs - old.atMs) / 1000;
      return Object.fromEntries(names.map(function (name) {
        return [name, (counts[name] - old.counts[name]) / seconds];
      }));
    };
    this.forget = function (key) {
      before.delete(key);
    };
  }

  // Asks for the ports of guests, a few guests a time, in turns.
  // take(key, rates) gets {packets_in, packets_out, bits_in, bits_out, drops}
  // of "server/MAC"; in is to the guest. Rates are null after a failure.
  function Ports(url, most, take) {
    const meter = new Meter(), known = new Set();
    let next = 0;

    // A guest that answers no counters has no rates any more.
    function drop(server) {
      for (const key of known) {
        if (key.startsWith(server + '/')) {
          known.delete(key);
          meter.forget(key);
          take(key, null);
        }
      }
    }

    this.ask = async function (servers) {
      if (!servers.length) {
        return;
      }
      const query = new URLSearchParams();
      next = next < servers.length ? next : 0;
      for (const server of servers.slice(next, next + most)) {
        query.append('server', server);
      }
      next += most;
      for (const guest of (await ask(url + '?' + query)).guests) {
        if (guest.error) {
          drop(guest.id);
        }
        for (const port of guest.ports || []) {
          const key = guest.id + '/' + port.mac;
          known.add(key);
          take(key, meter.rates(key, guest.at_ms, {
            packets_in: port.tx_packets, packets_out: port.rx_packets,
            bits_in: 8 * port.tx_bytes, bits_out: 8 * port.rx_bytes,
            drops: port.drops}));
        }
      }
    };
  }

  return {si: si, ask: ask, repeat: repeat, Meter: Meter, Ports: Ports};
}());
