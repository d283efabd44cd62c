import { createHash } from 'node:crypto';

/** What every provider takes as the name of a function. */
const MAX_LENGTH = 64;
const DIGEST_LENGTH = 6;

/** A tool of a server, by the names that the definition and the server give. */
export interface NamedTool {
  server: string;
  tool: string;
}

/**
 * The names under which a model knows the tools: `server_tool`, of letters, digits, `_` and `-`, at most 64
 * characters, and no two the same. They depend on nothing but the names themselves, so that a later turn on
 * another worker calls the tool that the model has named.
 */
export function namesForModel(tools: readonly NamedTool[]): string[] {
  const plain = tools.map(({ server, tool }) => `${server}_${tool}`.replace(/[^A-Za-z0-9_-]/g, '_'));
  const times = new Map<string, number>();
  for (const name of plain) times.set(name, (times.get(name) ?? 0) + 1);
  return tools.map((tool, i) => {
    const name = plain[i] ?? '';
    const isFine = name.length <= MAX_LENGTH && times.get(name) === 1;
    return isFine ? name : `${name.slice(0, MAX_LENGTH - DIGEST_LENGTH - 1)}_${digest(tool)}`;
  });
}

const digest = ({ server, tool }: NamedTool): string =>
  createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, DIGEST_LENGTH);
