import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expectGolden } from './golden.js';
import { DRIVERS } from './redis.js';
import { shareStack } from './shared-stack.js';
import type { Stack } from './stack.js';
import { type Answer, exchange, type Headers, type Watch } from './wire.js';

const AGENTS = join(__dirname, '../agents');

/** What the tests of one contract share: a running stack, two tenants and a client that writes raw requests. */
export class Contract {
  private running: Stack | undefined;
  /** The caller's tenant, and another one. */
  tenant = { slug: '', token: '' };
  other = { slug: '', token: '' };

  /** @param headers what that system's client sends with every request, besides its token */
  constructor(
    private readonly profile: string,
    private readonly headers: Headers = {},
  ) {}

  get stack(): Stack {
    if (!this.running) throw new Error('The stack is not up yet.');
    return this.running;
  }

  get url(): string {
    return this.stack.apis[0]!.url;
  }

  /** On a stack that is up, with two tenants of its own. */
  async use(stack: Stack): Promise<void> {
    this.running = stack;
    [this.tenant, this.other] = await Promise.all([stack.createTenant(), stack.createTenant()]);
  }

  /** POST as the tenant's client; the answer is read to its end. */
  post(path: string, body: string | object, headers: Headers = {}, watch?: Watch): Promise<Answer> {
    const type: Headers = { 'content-type': 'application/json', ...this.headers };
    return this.send('POST', path, { ...type, ...headers }, body, watch);
  }

  get(path: string, headers: Headers = {}, watch?: Watch): Promise<Answer> {
    return this.send('GET', path, headers, undefined, watch);
  }

  /** As the other tenant. */
  get stranger(): Headers {
    return { authorization: `Bearer ${this.other.token}` };
  }

  /** Create an agent in a tenant's catalog; its id. */
  async createAgent(slug: string, definition: object = {}, tenant = this.tenant.slug): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'baton-contract-'));
    const file = join(folder, 'agent.yaml');
    try {
      const whole = { name: slug, description: `The ${slug}.`, runtime: 'echo', ...definition };
      writeFileSync(file, JSON.stringify(whole));
      const args = ['--tenant', tenant, '--file', file, '--slug', slug, '--json'];
      return (JSON.parse(await this.stack.baton('agents', 'create', ...args)) as { id: string }).id;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  expectGolden(name: string, answer: Answer): void {
    expectGolden(this.profile, name, answer);
  }

  private send(
    method: string,
    path: string,
    headers: Headers,
    body?: string | object,
    watch?: Watch,
  ): Promise<Answer> {
    const all = { authorization: `Bearer ${this.tenant.token}`, ...headers };
    return exchange(this.url, { method, path, headers: all, body }, watch);
  }
}

/** A contract. Those of one file share a stack, which has the settings `env` of each. */
export function describeContract(
  profile: string,
  {
    headers,
    env,
    prepare,
  }: { headers?: Headers; env?: Record<string, string>; prepare?: (api: Contract) => Promise<unknown> },
  tests: (api: Contract) => void,
): void {
  describe(profile, () => {
    const api = new Contract(profile, headers);
    const start = shareStack(DRIVERS[0]!, { BATON_AGENTS_DIR: AGENTS, WITNESS_FILE: '/dev/null', ...env });
    beforeAll(async () => {
      await api.use(await start());
      await prepare?.(api);
    });
    tests(api);
  });
}
