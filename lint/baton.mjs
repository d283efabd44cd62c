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

export default {
  meta: { name: 'baton' },
  rules: { 'one-exported-class': oneExportedClass },
};
