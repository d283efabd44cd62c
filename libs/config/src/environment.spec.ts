import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { loadEnvironment, loadLocalEnvironment } from './environment.js';
import { withSecretFiles } from './environment-source.js';
import { EnvironmentError } from './environment-error.js';
import { isBatonSecret, SETTING_NAMES } from './settings.js';

const DATABASE_URL = 'postgres://baton:hunter2@db:5432/baton';

/** The sentences with which an environment is refused. */
function problems(source: Record<string, string>): readonly string[] {
  try {
    loadEnvironment(source);
  } catch (error) {
    if (error instanceof EnvironmentError) return error.problems;
    throw error;
  }
  return [];
}

describe('a secret in a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-secrets-'));
  const file = join(folder, 'url');
  beforeAll(() => writeFileSync(file, `${DATABASE_URL}\n`));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is read where the secret itself has no value', () => {
    const source = withSecretFiles({ DATABASE_URL: '', DATABASE_URL_FILE: file, PORT: '1' });
    expect(source).toMatchObject({ DATABASE_URL, PORT: '1' });
    expect(withSecretFiles({ DATABASE_URL: 'own', DATABASE_URL_FILE: file }).DATABASE_URL).toBe('own');
  });

  it('that cannot be read is named with the reason; other settings are in no file', () => {
    expect(() => withSecretFiles({ CARD_SIGNING_KEY_FILE: join(folder, 'none') })).toThrow(
      /^CARD_SIGNING_KEY_FILE: .*none cannot be read \(ENOENT\): name a file that this user can read\.$/,
    );
    expect(withSecretFiles({ LOG_LEVEL_FILE: file })).toEqual({ LOG_LEVEL_FILE: file });
  });
});

describe('environment', () => {
  it('takes another role for migrations, but not another database', () => {
    const MIGRATE_DATABASE_URL = 'postgres://owner:hunter3@db:6432/baton';
    expect(loadEnvironment({ DATABASE_URL, MIGRATE_DATABASE_URL }).migrateDatabaseUrl).toBe(
      MIGRATE_DATABASE_URL,
    );
    const [problem, ...others] = problems({ DATABASE_URL: `${DATABASE_URL}_restored`, MIGRATE_DATABASE_URL });
    expect(problem).toBe(
      'MIGRATE_DATABASE_URL names the database "baton", and DATABASE_URL "baton_restored": set both to the same database.',
    );
    expect(others).toEqual([]);
  });

  it('sends what needs a session past a pooler', () => {
    const DATABASE_DIRECT_URL = 'postgres://user:hunter3@db:5432/real';
    const pooled = loadEnvironment({ DATABASE_URL, DATABASE_DIRECT_URL });
    expect(pooled).toMatchObject({ databaseDirectUrl: DATABASE_DIRECT_URL, isDatabasePooled: true });
    const direct = loadEnvironment({ DATABASE_URL });
    expect(direct).toMatchObject({ databaseDirectUrl: DATABASE_URL, isDatabasePooled: false });
    // The pooler may have another name for the database.
    const MIGRATE_DATABASE_URL = 'postgres://owner@db/real';
    loadEnvironment({ DATABASE_URL, DATABASE_DIRECT_URL, MIGRATE_DATABASE_URL });
    expect(problems({ DATABASE_URL, DATABASE_DIRECT_URL, MIGRATE_DATABASE_URL: DATABASE_URL })[0]).toMatch(
      /^MIGRATE_DATABASE_URL names the database "baton", and DATABASE_DIRECT_URL "real"/,
    );
  });

  it('needs only DATABASE_URL', () => {
    const environment = loadEnvironment({ DATABASE_URL });
    expect(environment).toMatchObject({ databaseUrl: DATABASE_URL, port: 8080, leaseMs: 3000 });
    expect(environment.publicUrl).toBe('http://localhost:8080');
    expect(environment.redisUrl).toBeUndefined();
    expect(environment.workerPort).toBeUndefined();
  });

  it('sends heartbeats sooner than clients in Python give up, which is after five seconds', () => {
    expect(loadEnvironment({ DATABASE_URL }).sseHeartbeatMs).toBeLessThan(5_000);
  });

  it('takes an empty value as not set', () => {
    const environment = loadEnvironment({ DATABASE_URL, REDIS_URL: '', PORT: ' ', WORKER_PORT: '' });
    expect(environment).toMatchObject({ redisUrl: undefined, port: 8080, workerPort: undefined });
  });

  it('names every bad key at once, each with its remedy', () => {
    expect(problems({ PORT: 'web', LOG_LEVEL: 'loud' })).toEqual([
      'DATABASE_URL is not set: set it to a Postgres URL such as postgres://user:password@host:5432/baton.',
      'PORT is "web": set it to a whole number from 0 to 65535.',
      'LOG_LEVEL is "loud": set it to one of fatal, error, warn, info, debug, trace, silent.',
    ]);
  });

  it.each([
    ['DATABASE_URL', 'mysql://root:hunter2@db/baton'],
    ['REDIS_URL', 'hunter2'],
    ['BATON_MASTER_KEY', 'hunter2'],
    ['CARD_SIGNING_KEY', '{"d":"hunter2"}'],
  ])('never shows the value of %s', (key, value) => {
    const [problem, ...others] = problems({ DATABASE_URL, [key]: value });
    expect(problem).toMatch(new RegExp(`^${key} is not valid: set it to .+\\.$`));
    expect(others).toEqual([]);
    expect(problem).not.toContain('hunter2');
  });

  it.each([
    ['redis://:hunter2@host?sentinal=main', 'set it to a Redis URL with no other parameters than'],
    ['redis://:hunter2@host?cacert=/ca.pem', 'begin it with rediss://'],
    ['rediss://:hunter2@host?cert=/cert.pem', 'set both of its parameters cert and key'],
    ['redis://:hunter2@host?hosts=two:26379', 'add cluster=true, or sentinel'],
    ['redis://:hunter2@host?sentinelUser=u', 'add sentinel=<name of the primary>'],
    ['redis://:hunter2@host?sentinel=main&cluster=true', 'set its parameter sentinel or cluster, not both'],
    ['redis://:hunter2@host?cluster=yes', 'set its parameter cluster to true'],
    ['redis://:hunter2@host/3?cluster=true', 'remove the number of the database'],
    ['redis://:hunter2@host?sentinel=main&hosts=two', 'set its parameter hosts to names with ports'],
    ['redis://:hunter2@host/first', 'end it with the number of a database'],
    ['redis://:hunter2@host?family=5', 'set its parameter family to 4 or 6'],
  ])('says what is wrong with %s', (url, remedy) => {
    const [problem] = problems({ DATABASE_URL, REDIS_URL: url });
    expect(problem).toContain(`REDIS_URL is not valid: ${remedy}`);
    expect(problem).not.toContain('hunter2');
  });

  it('takes every setting with the name of a secret for one', () => {
    const names = SETTING_NAMES.filter((name) => /_(KEY|PASSWORD|SECRET|TOKEN)(_|$)/.test(name));
    expect(names).toContain('POSTGRES_PASSWORD');
    expect(names.filter((name) => !isBatonSecret(name))).toEqual([]);
  });

  it('refuses a port, a limit and a heartbeat that cannot work', () => {
    expect(problems({ DATABASE_URL, PORT: '70000' })).toHaveLength(1);
    expect(problems({ DATABASE_URL, MAX_ATTEMPTS: '0' })).toHaveLength(1);
    expect(problems({ DATABASE_URL, LEASE_MS: '2000', LEASE_HEARTBEAT_MS: '1500' })).toEqual([
      'LEASE_HEARTBEAT_MS is 1500: set it to at most half of LEASE_MS (2000).',
    ]);
  });

  it('reads keys and URLs in the forms people have them in', () => {
    const environment = loadEnvironment({
      DATABASE_URL,
      PUBLIC_URL: 'https://agents.example.com/',
      BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      CARD_SIGNING_KEY: '-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n',
    });
    expect(environment.publicUrl).toBe('https://agents.example.com');
    expect(environment.masterKey).toHaveLength(32);
    expect(environment.cardSigningKey).toContain('KEY-----\nMIIE\n');
  });

  it('takes networks, addresses and hosts that agents may call, and nothing else', () => {
    const OUTBOUND_ALLOW = '10.0.0.0/8, fd00::/8 ,::1,[::1]:8080, ollama:11434, models.corp.example.,';
    expect(loadEnvironment({ DATABASE_URL, OUTBOUND_ALLOW }).outboundAllow).toEqual([
      '10.0.0.0/8',
      'fd00::/8',
      '::1',
      '[::1]:8080',
      'ollama:11434',
      'models.corp.example.',
    ]);
    for (const wrong of ['10.0.0.0/33', 'corp/8', 'http://ollama', '10.1/8', '10.0.0.0/8/8', '*']) {
      expect(problems({ DATABASE_URL, OUTBOUND_ALLOW: wrong })).toEqual([
        expect.stringContaining('set it to networks and hosts'),
      ]);
    }
  });

  it('lets `npm start` do without any key', () => {
    expect(loadLocalEnvironment({})).toMatchObject({ workers: 1, port: 8080, databaseUrl: undefined });
  });
});

describe('.env.example', () => {
  const root = join(__dirname, '../../..');
  const text = readFileSync(join(root, '.env.example'), 'utf8');
  const example = parseEnv(text);

  it('has every key of the typed environment and no other', () => {
    expect(Object.keys(example).sort()).toEqual([...SETTING_NAMES].sort());
  });

  it('shows the defaults, so that a copy of it changes nothing', () => {
    expect(loadEnvironment({ ...example, DATABASE_URL })).toEqual(loadEnvironment({ DATABASE_URL }));
    expect(loadLocalEnvironment(example)).toEqual(loadLocalEnvironment({}));
  });

  it('explains every key', () => {
    const lines = text.split('\n');
    const bare = lines.filter((line, i) => /^\w+=/.test(line) && !/^(#|\w+=)/.test(lines[i - 1] ?? ''));
    expect(bare).toEqual([]);
  });
});
