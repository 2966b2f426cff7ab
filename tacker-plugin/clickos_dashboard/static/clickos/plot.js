// SPDX-License-Identifier: Apache-2.0
// Plots of rates over the last minutes, with axes before there is a rate.
(function () {
  'use strict';
  const SPAN_MS = 300000, MINUTE_MS = 60000;
  //: A longer silence breaks the line.
  const GAP_MS = 15000;
  const WIDTH = 600, HEIGHT = 200;
  const LEFT = 64, RIGHT = 16, TOP = 24, BOTTOM = 40;
  const STYLES = [['#1f5fa8', ''], ['#a8501f', '7 3'], ['#2f7d32', '2 3'],
                  ['#7b2d8b', '9 3 2 3'], ['#5c5c00', '4 2'],
                  ['#a01040', '1 2'], ['#00696b', '12 4'], ['#444', '3 6']];

  // place: an element that holds plot and legend.
  // words: {label, unit, minutes, now} for people.
  function Plot(place, words) {
    const series = new Map();
    const x = d3.scale.linear().domain([-SPAN_MS / MINUTE_MS, 0])
      .range([LEFT, WIDTH - RIGHT]);
    const y = d3.scale.linear().range([HEIGHT - BOTTOM, TOP]);
    const root = d3.select(document.createElementNS(
      d3.ns.prefix.svg, 'svg'));
    root.attr('viewBox', '0 0 ' + WIDTH + ' ' + HEIGHT).attr('role', 'img')
      .attr('aria-label', words.label + ', ' + words.unit);
    const across = root.append('g').attr('class', 'clickos-axis')
      .attr('transform', 'translate(0 ' + (HEIGHT - BOTTOM) + ')');
    const up = root.append('g').attr('class', 'clickos-axis')
      .attr('transform', 'translate(' + LEFT + ' 0)');
    const lines = root.append('g');
    root.append('text').attr('x', 4).attr('y', 12).text(words.unit);
    root.append('text').attr('x', WIDTH - RIGHT).attr('y', HEIGHT - 4)
      .attr('text-anchor', 'end').text(words.minutes);
    across.call(d3.svg.axis().scale(x).orient('bottom')
      .tickValues(d3.range(-SPAN_MS / MINUTE_MS, 1)).outerTickSize(0)
      .tickFormat(function (minutes) {
        return minutes ? '−' + -minutes : words.now;
      }));
    const legend = document.createElement('ul');
    legend.className = 'clickos-legend list-inline';
    place.replaceChildren(root.node(), legend);

    // Adds a rate at a time in milliseconds; a name without one: null.
    this.add = function (name, atMs, rate) {
      const points = series.get(name) || [];
      series.set(name, points);
      if (rate === null) {
        return;
      }
      const last = points[points.length - 1];
      if (last && atMs - last[0] > GAP_MS) {
        points.push([atMs, null]);
      }
      points.push([atMs, rate]);
      while (points[0][0] < atMs - SPAN_MS) {
        points.shift();
      }
    };

    // Returns the highest rate that is shown.
    this.top = function () {
      return Math.max(0, ...[...series.values()].flat().map(
        function (point) { return point[1]; }));
    };

    // Forgets the names that are not among some.
    this.keep = function (names) {
      for (const name of [...series.keys()]) {
        if (!names.includes(name)) {
          series.delete(name);
        }
      }
    };

    // Draws until now; top is the least height of the plot, as a rate.
    this.draw = function (nowMs, top = 0) {
      y.domain([0, Math.max(1, top, this.top())]).nice(4);
      up.call(d3.svg.axis().scale(y).orient('left').ticks(4)
        .innerTickSize(LEFT + RIGHT - WIDTH).outerTickSize(0).tickPadding(6)
        .tickFormat(function (rate) { return window.clickos.si(rate); }));
      const line = d3.svg.line()
        .defined(function (point) { return point[1] !== null; })
        .x(function (point) { return x((point[0] - nowMs) / MINUTE_MS); })
        .y(function (point) { return y(point[1]); });
      const paths = lines.selectAll('path').data([...series.values()]);
      paths.enter().append('path').attr('fill', 'none')
        .attr('stroke-width', 2);
      paths.exit().remove();
      paths.attr('stroke', function (_points, i) {
        return STYLES[i % STYLES.length][0];
      }).attr('stroke-dasharray', function (_points, i) {
        return STYLES[i % STYLES.length][1];
      }).attr('d', line);
      legend.replaceChildren(...[...series].map(entry));
    };

    function entry([name, points], i) {
      const made = document.createElement('li');
      const [stroke, dash] = STYLES[i % STYLES.length];
      d3.select(made).append('svg').attr('width', 26).attr('height', 8)
        .attr('aria-hidden', 'true').append('line').attr('x2', 26)
        .attr('y1', 4).attr('y2', 4).attr('stroke', stroke)
        .attr('stroke-width', 2).attr('stroke-dasharray', dash);
      made.append(' ' + name + ': ' + (points.length ? window.clickos.si(
        points[points.length - 1][1], words.unit) : '–'));
      return made;
    }
  }

  window.clickos.Plot = Plot;
}());
