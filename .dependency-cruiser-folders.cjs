// Which folders may know each other: `depcruise --config .dependency-cruiser-folders.cjs apps libs`. Tests are left out, for
// they may look at anything. The rules about files and libraries are in .dependency-cruiser.cjs.

const { options } = require('./.dependency-cruiser.cjs');

const TESTS = '\\.(spec|int-spec|e2e-spec|nightly-spec|fixture)\\.c?ts$|\\.fixture\\.cjs$|^libs/[^/]+/test/';

module.exports = {
  forbidden: [
    {
      name: 'no-cycles-between-folders',
      comment: 'The folders of a library are layers: you can read each without those above it.',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
  ],
  options: { ...options, exclude: { path: `${options.exclude.path}|${TESTS}` } },
};
