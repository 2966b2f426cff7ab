// SPDX-License-Identifier: Apache-2.0
// Lets Horizon's templates work without eval, which the policy of our pages
// forbids. Hogan makes a function of a template's text; here it walks the
// parsed template each time. Horizon compiles its templates after this ran.
(function () {
  'use strict';
  function look(template, name, stack, partials, isSection) {
    return template[name.includes('.') ? 'd' : 'f'](name, stack, partials,
                                                    isSection);
  }

  const WRITERS = {
    _v: function (template, node, stack, partials) {
      template.b(template.v(look(template, node.n, stack, partials)));
    },
    '{': function (template, node, stack, partials) {
      template.b(template.t(look(template, node.n, stack, partials)));
    },
    '>': function (template, node, stack, partials) {
      template.b(template.rp(node.n, stack, partials, node.indent || ''));
    },
    '#': function (template, node, stack, partials) {
      const found = look(template, node.n, stack, partials, true);
      if (template.s(found, stack, partials, false, node.i, node.end,
                     node.otag + ' ' + node.ctag)) {
        template.rs(stack, partials, function (inner, parts, writer) {
          write(writer, node.nodes, inner, parts);
        });
        stack.pop();
      }
    },
    '^': function (template, node, stack, partials) {
      const found = look(template, node.n, stack, partials, true);
      if (!template.s(found, stack, partials, true, 0, 0, '')) {
        write(template, node.nodes, stack, partials);
      }
    },
    '\n': function (template) {
      template.b('\n');
    }
  };
  WRITERS['&'] = WRITERS['{'];
  WRITERS['<'] = WRITERS['>'];

  function write(template, nodes, stack, partials) {
    for (const node of nodes) {
      if (node.tag === undefined) {
        template.b(String(node));
      } else if (Object.hasOwn(WRITERS, node.tag)) {
        WRITERS[node.tag](template, node, stack, partials);
      }
    }
  }

  Hogan.generate = function (tree, text, options) {
    return new Hogan.Template(function (stack, partials, indent) {
      this.b(indent || '');
      write(this, tree, stack, partials);
      return this.fl();
    }, text, Hogan, options);
  };
}());
