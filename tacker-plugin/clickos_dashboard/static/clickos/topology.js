// SPDX-License-Identifier: Apache-2.0
// Shows the rates of connection points and of chains, in the picture and in
// the table and the list below it.
(function () {
  'use strict';
  const EVERY_MS = 3000;
  // Chains of a round; each takes a request to the hosts of its hops.
  const CHAINS = 2;
  const COLUMNS = ['packets_in', 'packets_out', 'bits_in', 'bits_out',
                   'drops'];
  const box = document.getElementById('clickos-topology');
  if (!box) {
    return;
  }
  const si = window.clickos.si;
  const latest = new Map();
  const points = [...document.querySelectorAll('#clickos-points tr[data-key]')]
    .map(function (row) {
      return {row: row, ports: row.dataset.ports.split(' ').filter(Boolean),
              edge: box.querySelector('[data-key="' + row.dataset.key + '"]')};
    });
  const servers = [...new Set(points.flatMap(function (point) {
    return point.ports.map(function (port) { return port.split('/')[0]; });
  }))];

  // Returns the sum of the ports; nothing if no port has rates yet.
  function sum(ports) {
    const found = ports.map(function (port) { return latest.get(port); })
      .filter(Boolean);
    return found.length ? COLUMNS.map(function (name) {
      return found.reduce(function (all, rates) {
        return all + rates[name];
      }, 0);
    }) : null;
  }

  function show() {
    const sums = points.map(function (point) { return sum(point.ports); });
    const top = Math.max(0, ...sums.map(function (rates) {
      return rates ? rates[0] + rates[1] : 0;
    }));
    points.forEach(function (point, i) {
      const rates = sums[i], cells = point.row.cells;
      COLUMNS.forEach(function (_name, at) {
        cells[cells.length - COLUMNS.length + at].textContent =
          rates ? si(rates[at]) : '–';
      });
      if (!point.edge) {
        return;
      }
      const packets = rates ? rates[0] + rates[1] : 0;
      const words = rates ? [si(packets, 'pkt/s'),
                             si(rates[2] + rates[3], 'bit/s')] : ['', ''];
      point.edge.querySelectorAll('.rate').forEach(function (text, at) {
        text.textContent = words[at];
      });
      point.edge.classList.toggle('hot', packets > 0 && packets > top / 2);
      point.edge.classList.toggle('drops', Boolean(rates && rates[4] > 0));
    });
  }

  // The arrow to a hop has its number.
  const meter = new window.clickos.Meter();
  const chains = [...document.querySelectorAll('#clickos-chains li')].map(
    function (item) {
      return {item: item, arrows: [...box.querySelectorAll('.chain')].filter(
        function (arrow) {
          return arrow.dataset.chain === item.dataset.chain;
        })};
    });
  let turn = 0;

  // Returns {packets, dropped} a second; null before the second answer.
  function rate(chain, number, counters) {
    return counters ? meter.rates(
      chain.item.dataset.chain + ' ' + number, performance.now(),
      {packets: counters.packets, dropped: counters.dropped}) : null;
  }

  function showChain(chain, counters) {
    const entered = rate(chain, 0, counters);
    chain.item.querySelector('.clickos-entered').textContent =
      entered ? si(entered.packets, 'pkt/s') : '';
    for (const arrow of chain.arrows) {
      const number = Number(arrow.dataset.hop);
      const found = rate(chain, number, counters.hops[number - 1]);
      arrow.querySelector('.rate').textContent =
        found ? si(found.packets, 'pkt/s') : '';
      arrow.classList.toggle('drops', Boolean(found && found.dropped > 0));
    }
  }

  // A chain whose host does not answer has no rates; the others have.
  async function askChain(chain) {
    try {
      showChain(chain, (await window.clickos.ask(
        chain.item.dataset.url)).counters);
    } catch (problem) {
      chain.item.querySelector('.clickos-entered').textContent =
        chain.item.dataset.away;
      for (const arrow of chain.arrows) {
        arrow.querySelector('.rate').textContent = '';
        arrow.classList.remove('drops');
      }
    }
  }

  async function askChains() {
    turn = turn < chains.length ? turn : 0;
    await Promise.all(chains.slice(turn, turn + CHAINS).map(askChain));
    turn += CHAINS;
  }

  window.clickos.zoom(box).show(box.querySelector('svg'));
  const ports = new window.clickos.Ports(
    box.dataset.url, Number(box.dataset.most), function (key, rates) {
      if (rates) {
        latest.set(key, rates);
      } else {
        latest.delete(key);
      }
    });
  let rounds = 0;
  window.clickos.repeat('clickos-topology-error', EVERY_MS, async function () {
    await Promise.all([ports.ask(servers), askChains()]);
    show();
    rounds += 1;
    // The second answers, which make the first rates, come soon.
    return rounds < 4 ? EVERY_MS / 3 : EVERY_MS;
  });
}());
