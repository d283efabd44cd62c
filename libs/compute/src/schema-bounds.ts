/** Maximum size of a JSON schema of a tenant or a tool server. */
export const SCHEMA_BOUNDS = { bytes: 65_536, depth: 64, nodes: 5_000, refs: 200 } as const;

const REFS = ['$ref', '$dynamicRef', '$recursiveRef'];

/**
 * The exceeded bound of a schema, as a clause such as `is larger than 65536 bytes`; undefined if there is none. Takes
 * time in proportion to the bound, not to the schema.
 */
export function schemaExcess(schema: object): string | undefined {
  let level: object[] = [schema];
  let [nodes, refs] = [0, 0];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > SCHEMA_BOUNDS.depth) return `is nested deeper than ${SCHEMA_BOUNDS.depth} levels`;
    const next: object[] = [];
    for (const node of level) {
      refs += REFS.filter((name) => Object.hasOwn(node, name)).length;
      for (const child of Object.values(node)) {
        if (typeof child === 'object' && child !== null) next.push(child as object);
      }
      nodes += 1;
      if (nodes + next.length > SCHEMA_BOUNDS.nodes) {
        return `has more than ${SCHEMA_BOUNDS.nodes} objects and lists`;
      }
    }
    if (refs > SCHEMA_BOUNDS.refs) return `has more than ${SCHEMA_BOUNDS.refs} references`;
    level = next;
  }
  const isLarge = Buffer.byteLength(JSON.stringify(schema)) > SCHEMA_BOUNDS.bytes;
  return isLarge ? `is larger than ${SCHEMA_BOUNDS.bytes} bytes` : undefined;
}
