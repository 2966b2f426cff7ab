// SPDX-License-Identifier: Apache-2.0
// Shows the rates of a chain's hops, as a table and as a plot for each hop.
(function () {
  'use strict';
  const EVERY_MS = 2000;
  const table = document.getElementById('clickos-chain');
  const figures = document.getElementById('clickos-hops');
  if (!table) {
    return;
  }
  const si = window.clickos.si, words = figures.dataset;
  const meter = new window.clickos.Meter();
  const latest = new Map();
  // The first row and plot are those of the whole chain.
  const hops = [...table.tBodies[0].rows].map(function (row) {
    return {row: row, ports: (row.dataset.ports || '').split(' ')
      .filter(Boolean)};
  });
  const servers = [...new Set(hops.flatMap(function (hop) {
    return hop.ports.map(function (port) { return port.split('/')[0]; });
  }))];
  const plots = [...figures.querySelectorAll('[data-hop]')].map(
    function (place) {
      return new window.clickos.Plot(place, {
        label: place.parentElement.querySelector('figcaption').textContent,
        unit: words.unit, minutes: words.minutes, now: words.now});
    });
  const ports = new window.clickos.Ports(
    table.dataset.traffic, Number(table.dataset.most),
    function (key, rates) {
      if (rates) {
        latest.set(key, rates);
      } else {
        latest.delete(key);
      }
    });

  // Returns the sum of a rate of all ports; null before there is one.
  function sum(hop, name) {
    const found = hop.ports.map(function (port) { return latest.get(port); })
      .filter(Boolean);
    return found.length ? found.reduce(function (all, rates) {
      return all + rates[name];
    }, 0) : null;
  }

  // Returns in, out and dropped of a hop; null where there is no rate yet.
  function rates(hop, number, atMs, counters) {
    const own = meter.rates(number, atMs, {
      packets: counters.packets, bits: 8 * counters.bytes,
      dropped: counters.dropped});
    const lost = sum(hop, 'drops');
    return {in: own && own.packets, bits: own && own.bits,
            out: sum(hop, 'packets_out'),
            dropped: own && own.dropped + (lost || 0)};
  }

  function fill(row, counters, found) {
    const shown = function (rate) { return rate === null ? '–' : si(rate); };
    [('pairs' in counters ? counters.live_pairs + '/' + counters.pairs : ''),
     shown(found.in), shown(found.out), shown(found.bits),
     shown(found.dropped), counters.packets, counters.dropped,
     counters.looped || 0].forEach(function (text, at) {
      row.cells[at + 1].textContent = text;
    });
  }

  function show(counters) {
    const atMs = performance.now();
    if (counters.hops.length !== hops.length - 1) {
      throw new Error(table.dataset.changed);
    }
    [counters, ...counters.hops].forEach(function (each, number) {
      const found = rates(hops[number], number, atMs, each);
      fill(hops[number].row, each, found);
      // The chain as a whole has no ports, so no line of what comes out.
      plots[number].add(words.in, atMs, found.in);
      plots[number].add(words.dropped, atMs, found.dropped);
      if (number) {
        plots[number].add(words.out, atMs, found.out);
      }
    });
    draw(atMs);
  }

  function draw(atMs) {
    const top = Math.max(...plots.map(function (plot) {
      return plot.top();
    }));
    for (const plot of plots) {
      plot.draw(atMs, top);
    }
  }

  draw(0);
  window.clickos.repeat('clickos-chain-error', EVERY_MS, async function () {
    const answer = await window.clickos.ask(table.dataset.url);
    await ports.ask(servers);
    show(answer.counters);
  });
}());
