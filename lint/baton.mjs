// The rules of this house for oxlint, as a plugin of ESLint's form.

/** An exported class has its own file, so that the name in the tree is the name in the code. */
const oneExportedClass = {
  create(context) {
    let first;
    const check = (node) => {
      const declared = node.declaration;
      if (declared?.type !== 'ClassDeclaration') return;
      if (first) {
        context.report({
          node: declared,
          message: `Give ${declared.id?.name ?? 'this class'} its own file: ${first} is exported here already.`,
        });
      }
      first ??= declared.id?.name ?? 'a class';
    };
    return {
      Program() {
        first = undefined;
      },
      ExportNamedDeclaration: check,
      ExportDefaultDeclaration: check,
    };
  },
};

/** Only one folder depends on the form of a log's rows: a row may hold many events, or may be left out (ADR 0051). */
const logTable = {
  create(context) {
    const check = (node, text) => {
      if (!/\btask_events\b/.test(text)) return;
      context.report({
        node,
        message:
          'Put this SQL in libs/database/src/log/ and import it: a row of task_events may hold several events, and event 1 may have no row.',
      });
    };
    return {
      Literal: (node) => typeof node.value === 'string' && check(node, node.value),
      TemplateElement: (node) => check(node, node.value.raw),
    };
  },
};

/** Two neighbours of one SQL type among many positions can be swapped unseen: the statement still runs. */
const namedInputs = {
  create(context) {
    const check = (node, text) => {
      const [position] = /\$([6-9]|[1-9]\d+)\b/.exec(text) ?? [];
      if (position === undefined) return;
      context.report({
        node,
        message: `Give the inputs of this statement names: it counts ${position} by hand. See libs/database/src/sql/statement.ts.`,
      });
    };
    return {
      Literal: (node) => typeof node.value === 'string' && check(node, node.value),
      TemplateElement: (node) => check(node, node.value.raw),
    };
  },
};

/** Many readers do not speak English as a first language: a contraction is a second form of each word. */
const noContractions = {
  create(context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const [contraction] =
            /\b[a-z]+(?:n['’]t|['’](?:re|ve|ll))\b|\b(?:it|that|there|here|let)['’]s\b/i.exec(
              comment.value,
            ) ?? [];
          if (contraction === undefined) continue;
          context.report({
            loc: comment.loc,
            message: `Write "${contraction}" in full: cannot, does not, it is.`,
          });
        }
      },
    };
  },
};

export default {
  meta: { name: 'baton' },
  rules: {
    'one-exported-class': oneExportedClass,
    'log-table': logTable,
    'named-inputs': namedInputs,
    'no-contractions': noContractions,
  },
};
