// The official SDKs as clients of one running Baton: that of JavaScript, and at night those of other languages. Each folder has a
// program, `run`, that prints a line for each of its checks. Every line that is expected here is a test.
import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { Stack } from '../support/stack.js';
import { whatIsMissing } from '../support/prepared.js';

const ERRORS = ['unknown task', 'task that cannot be canceled', 'bad request'];
const CHECKS = [
  'card',
  'signed card',
  'send',
  'stream',
  'get',
  'list',
  'cancel',
  'subscribe',
  'multi-turn',
  'files and data',
  'any values',
  'old text',
  'push',
  ...ERRORS,
];
/** 0.3 has no list of tasks, and its cards are not signed. */
const CHECKS_OF_0_3 = without('list', 'signed card', 'old text');
/** What only the programs in JavaScript and Python check. */
const TEXTS = ['any values', 'old text'];

function without(...names: string[]): string[] {
  return CHECKS.filter((check) => !names.includes(check));
}

const CHECKS_OF_ADK = [
  'send',
  'chunks',
  'input required',
  'files',
  'bare message',
  'failed task',
  'no agent',
];

/** The checks of each version and binding that an SDK speaks, and of frameworks whose agents are clients. */
const LANGUAGES: Record<string, Record<string, string[]>> = {
  javascript: {
    '1.0 JSON-RPC': CHECKS,
    '1.0 HTTP+JSON': CHECKS,
    '1.0 gRPC': CHECKS,
    '0.3 JSON-RPC': CHECKS_OF_0_3,
    '0.3 HTTP+JSON': CHECKS_OF_0_3,
  },
  python: {
    '1.0 JSON-RPC': CHECKS,
    '1.0 HTTP+JSON': CHECKS,
    '1.0 gRPC': CHECKS,
    '0.3 JSON-RPC': CHECKS_OF_0_3,
    '0.3 HTTP+JSON': CHECKS_OF_0_3,
  },
  // It does not verify cards. What it lacks over 0.3 is in main.go.
  go: {
    '1.0 JSON-RPC': without('signed card', ...TEXTS),
    '1.0 HTTP+JSON': without('signed card', ...TEXTS),
    '1.0 gRPC': without('signed card', ...TEXTS),
    '0.3 JSON-RPC': without('signed card', 'list', ...TEXTS, ...ERRORS),
    '0.3 gRPC': without('signed card', 'list', ...TEXTS),
  },
  // It does not verify cards. What else it lacks is in Main.java.
  java: {
    '1.0 JSON-RPC': without('signed card', 'push', ...TEXTS),
    '1.0 HTTP+JSON': without('signed card', 'push', ...TEXTS, ...ERRORS),
    '0.3 JSON-RPC': without('signed card', 'list', ...TEXTS),
    '0.3 HTTP+JSON': without('signed card', 'list', ...TEXTS, ...ERRORS),
    '0.3 gRPC': without('signed card', 'list', ...TEXTS, 'task that cannot be canceled'),
  },
  // ADK takes both SDKs, Strands that of 0.3. Strands sends only text, and always streams.
  frameworks: {
    'Google ADK 0.3, streaming': CHECKS_OF_ADK,
    'Google ADK 0.3, blocking': CHECKS_OF_ADK,
    'Google ADK 1.0, streaming': CHECKS_OF_ADK,
    'Google ADK 1.0, blocking': CHECKS_OF_ADK,
    'Strands Agents': ['send', 'stream', 'input required', 'bare message', 'no agent'],
  },
};

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const AGENT = {
  name: 'Interop',
  description: 'Echoes what it gets',
  runtime: 'echo',
  pushNotifications: true,
  extended: { description: 'Echoes what it gets, and tells callers with a token more' },
};
const programOf = (language: string): string => join(__dirname, language, 'run');

/** Why a language cannot run here, if so. In CI everything was prepared before, so this takes a second. */
const leftOut = Object.fromEntries(
  Object.keys(LANGUAGES).map((language) => [language, whatIsMissing(programOf(language))]),
);
const present = Object.keys(LANGUAGES).filter((language) => leftOut[language] === undefined);

/** The groups of processes that still run, by the pid of each one's leader. */
const running = new Set<number>();

/** Ends the programs and whatever they have started. */
function killRunning(): void {
  for (const pid of running) {
    running.delete(pid);
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
// A run of Jest that is ended has no afterAll.
process.on('exit', killRunning);

/** What a program prints, and what it says of errors. */
async function outputOf(language: string, args: readonly string[], env: Record<string, string>) {
  const options = { env: { ...process.env, ...env }, detached: true };
  const program = spawn('bash', [programOf(language), ...args], options);
  const { pid } = program;
  if (pid !== undefined) {
    running.add(pid);
    // Not at `exit`: what it has started may outlive it, and keeps its output open.
    program.once('close', () => running.delete(pid));
  }
  const [output, errors] = await Promise.all([text(program.stdout), text(program.stderr)]);
  return { output, errors };
}

/** What a program has said of its checks: `ok`, or what was wrong. */
async function run(language: string, env: Record<string, string>): Promise<Map<string, string>> {
  const { output, errors } = await outputOf(language, [], env);
  const results = new Map<string, string>();
  for (const block of output.split(/^(?=(?:not )?ok - )/m)) {
    const [, not, name = '', why = ''] = /^(not )?ok - (.*)\n([^]*)$/.exec(block) ?? [];
    results.set(name, not ? why : 'ok');
  }
  return results.set('', errors);
}

/** The programs of docs/calling/clients.md, by the word behind their fence. */
const EXAMPLES = {
  javascript: ['js', 'example.mjs'],
  python: ['python', 'example.py'],
  go: ['go', 'main.go'],
};
const PAGE = readFileSync(join(__dirname, '../../docs/calling/clients.md'), 'utf8');

/** Writes the program of the page where the SDK is found, and returns its path. */
function writeExample(language: keyof typeof EXAMPLES): string {
  const [fence = '', name = ''] = EXAMPLES[language];
  const [, program] = new RegExp(`^\`\`\`${fence}\\n(.*?)^\`\`\`$`, 'ms').exec(PAGE) ?? [];
  if (program === undefined) throw new Error(`The page has no program in ${language}`);
  const folder = join(__dirname, '../../.baton/interop', language, 'example');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), program);
  return join(folder, name);
}

let stack: Stack;
let caller: { BATON_URL: string; BATON_TOKEN: string; BATON_OLD_CONTEXT: string };
let said: Record<string, Map<string, string>>;

beforeAll(async () => {
  const env = {
    // Every client meets heartbeats between its events.
    SSE_HEARTBEAT_MS: '50',
    CARD_SIGNING_KEY: JSON.stringify(privateKey.export({ format: 'jwk' })),
    GRPC_PORT: '0',
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_AGENTS_DIR: join(__dirname, '../../examples/agents'),
    BATON_MASTER_KEY: randomBytes(32).toString('base64'),
  };
  stack = await Stack.start({ driver: 'postgres', env });
  const { token } = await stack.createTenant();
  // The cards of the first API list what cards list by default, those of the second gRPC as well. ADK refuses these.
  const [{ url }, { url: urlWithGrpc }] = [
    stack.apis[0]!,
    await stack.addApi({ GRPC_PUBLIC_ADDRESS: 'localhost:0' }),
  ];
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  await fetch(`${url}/v1/agents`, { method: 'POST', headers, body: JSON.stringify(AGENT) });
  caller = {
    BATON_URL: `${urlWithGrpc}/agents/interop/`,
    BATON_TOKEN: token,
    BATON_OLD_CONTEXT: await storeHalfACharacter(`${url}/agents/interop`, headers),
  };
  const ofFrameworks = { ...caller, BATON_URL: `${url}/agents/interop/` };
  const runs = present.map(async (language) => {
    return [language, await run(language, language === 'frameworks' ? ofFrameworks : caller)] as const;
  });
  said = Object.fromEntries(await Promise.all(runs));
});
afterAll(async () => {
  killRunning();
  process.off('exit', killRunning);
  await stack.stop();
});

/** A task as a release up to 0.2 may have stored it: with half of a surrogate pair. Resolves with its context. */
async function storeHalfACharacter(url: string, headers: Record<string, string>): Promise<string> {
  const contextId = 'of an earlier release';
  const message = { messageId: 'old', role: 'ROLE_USER', contextId, parts: [{ text: 'half MARK' }] };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } });
  await fetch(url, { method: 'POST', headers: { ...headers, 'a2a-version': '1.0' }, body });
  const database = new Client({ connectionString: stack.database.url });
  await database.connect();
  try {
    await database.query("SET baton.tenant = 'system'");
    for (const column of [
      'task_messages.message',
      'task_events.payload',
      'tasks.artifacts',
      'tasks.status',
    ]) {
      const [table = '', name = ''] = column.split('.');
      await database.query(
        `UPDATE ${table} SET ${name} = replace(${name}::text, 'MARK', '\\ud83d')::json WHERE ${name}::text LIKE '%MARK%'`,
      );
    }
  } finally {
    await database.end();
  }
  return contextId;
}

describe.each(Object.entries(LANGUAGES))('clients in %s', (language, kinds) => {
  const reason = leftOut[language];
  const describeIfHere = reason === undefined ? describe : describe.skip;

  describeIfHere.each(Object.entries(kinds))(
    `%s${reason === undefined ? '' : ` (${reason})`}`,
    (kind, checks) => {
      it.each(checks)('%s', (check) => {
        expect(said[language]?.get(`${kind}: ${check}`) ?? `was not run: ${said[language]?.get('')}`).toBe(
          'ok',
        );
      });
    },
  );

  (reason === undefined ? it : it.skip)('checks nothing else', () => {
    const expected = Object.entries(kinds).flatMap(([kind, checks]) =>
      checks.map((check) => `${kind}: ${check}`),
    );
    expect([...said[language]!.keys()].filter((name) => name !== '').sort()).toEqual(expected.sort());
  });
});

describe('the programs of docs/calling/clients.md', () => {
  const languages = Object.keys(EXAMPLES) as (keyof typeof EXAMPLES)[];
  it.each(languages.filter((language) => present.includes(language)))(
    'in %s run as they stand there: they send, stream, and resume a cut stream',
    async (language) => {
      const { output, errors } = await outputOf(language, ['--example', writeExample(language)], caller);
      const seen = output.trim().split('\n');
      expect({ seen: seen.map((line) => line.split(' ').slice(0, 2).join(' ')), errors }).toEqual({
        seen: [
          'sent: TASK_STATE_COMPLETED',
          ...[1, 2, 3].map((n) => `streamed: ${n}`),
          ...[4, 5, 6, 7, 8].map((n) => `resumed: ${n}`),
        ],
        errors: '',
      });
      expect(seen[0]).toBe('sent: TASK_STATE_COMPLETED Hello');
    },
  );
});
