// Attacks of bench/neighbours.mjs with what Baton must compute: schemas, JSON, answers of models and tools, code.
const MIB = 1_048_576;

/** A schema whose validation takes exponential time, in a few bytes. */
function nestedSchema(depth) {
  const $defs = { s0: { type: 'object' } };
  for (let i = 1; i <= depth; i++) {
    const $ref = `#/$defs/s${i - 1}`;
    $defs[`s${i}`] = { allOf: [{ $ref }, { not: { not: { $ref } } }, { $ref }] };
  }
  return { type: 'object', $ref: `#/$defs/s${depth}`, $defs };
}

/** A schema of some 850 KB. */
function largeSchema() {
  const property = (i) => [`property${i}`, { type: 'string', pattern: `^(a|b${i})*$`, minLength: i % 7 }];
  return {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 12_000 }, (_, i) => property(i))),
  };
}

const LARGE_SCHEMA = largeSchema();

export const CONTENT_ATTACKS = {
  'nested schema': {
    prepare: (a) => a.putAgent('nested', { output: { schema: nestedSchema(28) } }),
    act: (a) => a.send('nested', 'json'),
  },
  'large schema: dry run': {
    act: (a) => a.putAgent('large', { output: { schema: LARGE_SCHEMA } }, '?dryRun=true'),
  },
  'brackets: 16 MB': { act: (a) => a.request('POST', '/agents/echo', '['.repeat(16 * MIB - 1)) },
  'model answer of newlines': {
    prepare: (a) => a.putAgent('fence', { output: { schema: { type: 'object' } } }),
    act: (a) => a.send('fence', 'newlines'),
  },
  'model answer without end': {
    prepare: (a) => a.putAgent('endless', {}),
    act: (a) => a.send('endless', 'endless'),
  },
  'tools: 30 pages of 15 MB': {
    prepare: (a) => a.putAgent('tools', { tools: { mcp: [{ name: 'desk', url: `${a.peer}/mcp` }] } }),
    act: (a) => a.send('tools', 'json'),
  },
  spin: { act: (a) => a.send('busy', 'compute', { busyMs: 30_000 }) },
  flood: {
    act: (a) =>
      Promise.all(Array.from({ length: 50 }, () => a.send('echo', 'flood', { echo: { delayMs: 50 } }, true))),
  },
};
