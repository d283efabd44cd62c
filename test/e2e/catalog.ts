import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { tenantApi } from '../../apps/cli/src/api.js';
import { AgentsClient } from '../../apps/cli/src/agents/agents-client.js';
import { planChanges, writeChange } from '../../apps/cli/src/agents/files.js';
import { run } from '../../apps/cli/src/program.js';
import { DRIVERS } from '../support/index.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';

const SUPPORT = 'slug: support\nname: Support\ndescription: Answers questions\nruntime: echo\n';

const startStack = shareStack(DRIVERS[0]!, { BATON_MASTER_KEY: MASTER_KEY }, { apis: 2 });
let stack: Stack;
let folder: string;
let env: Record<string, string>;
let slug: string;

describe('agents of a tenant', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'baton-catalog-'));
    stack = await startStack();
    const tenant = await stack.createTenant();
    slug = tenant.slug;
    env = { BATON_HOME: folder, BATON_URL: stack.apis[0]!.url, BATON_TOKEN: tenant.token };
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  describe('baton agents apply', () => {
    it('shows what it would do, does it, and leaves alone what is as it should be', async () => {
      const file = write('support.yaml', SUPPORT);
      const dry = await baton(`agents apply -f ${file} --dry-run --exit-code`);
      expect(dry).toMatchObject({ code: 2, err: 'Nothing was written: this was a dry run.' });
      expect(dry.out).toContain(`Agent support would be created (${file})\n  + slug: support\n`);
      expect((await baton('agents show support')).err).toContain('There is no agent "support"');
      expect(await baton(`agents apply -f ${file}`)).toMatchObject({
        code: 0,
        err: '',
        out: expect.stringContaining('Agent support is created') as string,
      });
      expect(await baton(`agents apply -f ${file} --dry-run --exit-code`)).toMatchObject({
        code: 0,
        out: `Agent support is unchanged (${file})`,
      });
      write('support.yaml', SUPPORT.replace('questions', 'questions about orders'));
      expect((await baton(`agents apply -f ${file}`)).out).toBe(
        [
          `Agent support is changed to version 2 (${file})`,
          '    slug: support',
          '    name: Support',
          '  - description: Answers questions',
          '  + description: Answers questions about orders',
          '    version: 1.0.0',
          '    runtime: echo',
        ].join('\n'),
      );
    });

    it('writes nothing when one of many files is wrong, and names each with its field', async () => {
      const many = join(folder, 'many');
      mkdirSync(many);
      write('many/a.yaml', SUPPORT.replaceAll('support', 'first'));
      write('many/b.yml', 'name: B\ndescription: b\nruntime: echo\nconfig: {loud: true}\n');
      write('many/c.json', '{"name": "C", "runtime": "echo"}');
      write('many/d.yaml', SUPPORT.replaceAll('support', 'first'));
      write('many/notes.txt', 'no agent');
      const { code, out, err } = await baton(`agents apply -f ${many}`);
      expect([code, out]).toEqual([1, '']);
      expect(err.split('\n')).toEqual([
        `${many}/b.yml:4: config.loud: the echo runtime takes no settings.`,
        `${many}/c.json:1: description: is missing: give it a value of type string.`,
        `${many}/d.yaml: slug: "first" is also the slug of ${many}/a.yaml: give each agent its own.`,
        'Nothing was written.',
      ]);
      expect((await baton('agents show first')).code).toBe(3);
      expect((await baton(`agents apply -f ${many}/none.yaml`)).err).toContain(
        'none.yaml: there is no such file',
      );
    });

    it('applies what show prints', async () => {
      const shown = await baton('agents show support');
      const file = write('shown.yaml', shown.out);
      expect(JSON.parse((await baton(`agents apply -f ${file} --json`)).out)).toEqual([
        { file, slug: 'support', outcome: 'unchanged', version: 2, diff: [] },
      ]);
      const list = JSON.parse((await baton('agents list --json')).out) as {
        slug: string;
        version: number | null;
      }[];
      expect(list.map(({ slug, version }) => [slug, version])).toEqual([
        ['echo', null],
        ['index', null],
        ['support', 2],
      ]);
    });

    it('does not write over what another caller has changed since it looked', async () => {
      const api = tenantApi({ source: env }, {});
      const client = new AgentsClient(api);
      const [plan] = await planChanges(client, [write('mine.yaml', SUPPORT)]);
      const params = { path: { agent: 'support' } };
      await api.PATCH('/v1/agents/{agent}', { params, body: { description: 'Theirs' } });
      await expect(writeChange(client, plan!)).rejects.toThrow(
        '"support" is now at version 3: read it again',
      );
      expect((await baton('agents show support')).out).toContain('description: Theirs');
    });

    it('has versions to go back to', async () => {
      expect((await baton('agents restore support 1')).out).toBe(
        'Agent support has the contents of version 1 again (version 4).',
      );
      const { out } = await baton('agents versions support');
      expect(out.split('\n').slice(1)).toEqual(
        [/^4 +yes /, /^3 +yes /, /^2 +yes /, /^1 +yes /].map((line) => expect.stringMatching(line) as string),
      );
      expect((await baton('agents restore support 9')).err).toContain(
        'Version not found: 9 of the agent support',
      );
    });
  });

  it('a tenant sets its secrets with its token alone', async () => {
    expect((await baton('secrets set openai', 'sk-1\n')).out).toBe('Secret openai is set.');
    expect((await baton('secrets list')).out).toMatch(/^NAME .*\nopenai +\d/);
    expect((await baton('secrets remove openai')).out).toBe('Secret openai is removed.');
    expect((await baton('secrets remove openai')).err).toContain('answers 404: Secret not found: openai');
  });

  it('the extended card of an agent is for callers with the scopes that its file names', async () => {
    const file = write(
      'books.yaml',
      `${SUPPORT.replaceAll('support', 'books').replace('Support', 'Books')}extended:
  scopes: [tasks:write]
  skills: [{ id: book, name: Book an invoice, description: Books it }]
`,
    );
    expect(await baton(`agents apply -f ${file}`)).toMatchObject({ code: 0 });
    expect((await baton('agents show books')).out).toContain('Book an invoice');
    const url = `${stack.apis[0]!.url}/agents/books/.well-known/agent-card.json`;
    const card = await (await fetch(url, { headers: { authorization: `Bearer ${env.BATON_TOKEN}` } })).text();
    expect(JSON.parse(card)).toMatchObject({
      capabilities: { extendedAgentCard: true },
      supportsAuthenticatedExtendedCard: true,
    });
    expect(card).not.toContain('Book an invoice');
    const skills = [{ id: 'books' }, { id: 'book', name: 'Book an invoice' }];
    const methods = [
      ['GetExtendedAgentCard', '1.0'],
      ['agent/getAuthenticatedExtendedCard', '0.3'],
    ] as const;
    const weak = await stack.createToken(slug, 'agents:call');
    for (const [method, version] of methods) {
      expect(await caller('books', 1, version).call(method, {})).toMatchObject({ result: { skills } });
      const refused = await new RawCaller(stack.url(1, 'books'), weak, version).call(method, {});
      expect(refused.error?.message).toBe('the token lacks the scope tasks:write');
    }
  });

  describe('an agent that is taken away', () => {
    it('ends its tasks, and its callers see the end; no other caller finds them', async () => {
      await baton(`agents apply -f ${write('gone.yaml', SUPPORT.replaceAll('support', 'gone'))}`);
      await stack.killWorkers();
      const gone = caller('gone');
      const frames = gone.stream('SendStreamingMessage', sendParams('hello'));
      const { value: first } = await frames.next();
      const { id } = (first as Frame).data.result!.task as { id: string };
      expect((await baton('agents delete gone')).out).toBe(
        'Agent gone is deleted. Its running tasks finish.',
      );
      // It was only queued: a worker that comes later still runs it.
      await stack.addWorker();
      expect((await statesIn(frames)).at(-1)).toBe('COMPLETED');
      for (const api of [0, 1]) {
        const { result } = await caller('gone', api).call('GetTask', { id });
        expect(result).toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
      }
      const headers = { authorization: `Bearer ${env.BATON_TOKEN!}` };
      expect(await stack.rest(env.BATON_TOKEN!).task(id)).toMatchObject({ agent_version: 1 });
      const unknown = await caller('never-was').call('SendMessage', sendParams('hello'));
      const refused = await gone.call('SendMessage', sendParams('hello'));
      expect(JSON.stringify(refused).replaceAll('gone', 'never-was')).toBe(JSON.stringify(unknown));
      const card = await fetch(`${stack.url(1, 'gone')}/.well-known/agent-card.json`, { headers });
      expect(card.status).toBe(404);
    });

    it('takes nothing while it is disabled; a task that waits is answered when it is enabled again', async () => {
      const asked = await caller('support').call('SendMessage', sendParams('hello', asking));
      const { id: taskId } = asked.result!.task as { id: string };
      expect((await baton('agents disable support')).code).toBe(0);
      for (const more of [{}, { taskId }]) {
        const { error } = await caller('support').call('SendMessage', sendParams('hello', more));
        expect(error).toMatchObject({
          code: -32004,
          message: expect.stringMatching(/"support" is disabled/) as string,
        });
      }
      const listed = await caller('index').call('SendMessage', sendParams('who is there?'));
      expect(JSON.stringify(listed.result)).not.toContain('Support');
      expect((await baton('agents enable support')).code).toBe(0);
      const answered = await caller('support').call('SendMessage', sendParams('hello', { taskId }));
      expect(answered.result!.task.status.state).toBe('TASK_STATE_COMPLETED');
    });
  });
});

/** What a tenant who has a token and nothing else sees of one command. */
async function baton(line: string, input = '') {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) };
  const code = await run(line.split(' '), { source: env, terminal, stdin: () => Readable.from([input]) });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** @returns the path of the file */
function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const caller = (agent: string, api = 0, version = '1.0') =>
  new RawCaller(stack.url(api, agent), env.BATON_TOKEN!, version);
const asking = { metadata: { echo: { askInput: true } } };

async function statesIn(frames: AsyncIterable<Frame>): Promise<string[]> {
  const states: string[] = [];
  for await (const { data } of frames) {
    const { task, statusUpdate } = data.result ?? {};
    const state = (task ?? statusUpdate)?.status.state as string | undefined;
    if (state) states.push(state.replace('TASK_STATE_', ''));
  }
  return states;
}
