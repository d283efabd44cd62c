import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';
import { SEPARATE_OWNER } from '../../apps/local/src/services/postgres.js';
import { parseSigningKey } from '../../libs/a2a/src/index.js';
import { DEFAULT_LIMITS, ensureKeyFile, loadEnvironment } from '../../libs/config/src/index.js';
import { SECRET_FILE_NAMES, SETTING_NAMES } from '../../libs/config/src/settings.js';
import { composeRedis } from '../support/stock-redis.js';

const ROOT = join(__dirname, '../..');
const text = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
const example = parseEnv(readFileSync(join(ROOT, '.env.example'), 'utf8')) as Record<string, string>;

type Variables = Record<string, string>;

interface Service {
  env_file?: { path: string; required: boolean }[];
  environment: Record<string, string | number | null>;
  ports?: ({ host_ip: string; published: string; target: number } | string)[];
  profiles?: string[];
  volumes?: string[];
  deploy?: { replicas: string };
  stop_grace_period?: string;
  restart: string;
  healthcheck?: object;
  networks?: string[];
  command?: string[];
  depends_on?: Record<string, { condition: string }>;
  image?: string;
  build?: string;
  logging?: { driver: string; options: Record<string, string> };
  mem_limit?: string;
}

/** A file that adds to docker-compose.yml. `!reset` takes away what that has. */
const added = (name: string) =>
  parse(readFileSync(join(ROOT, name), 'utf8'), {
    merge: true,
    customTags: [{ tag: '!reset', collection: 'seq', resolve: (items) => items }],
  }) as {
    services: Record<string, Service>;
    networks: Record<string, { internal?: boolean; ipam?: object }>;
  };
const PROXY = added('docker-compose.proxy.yml');
const DIGESTS = added('docker-compose.digests.yml');

const { services, networks } = parse(text, { merge: true }) as {
  services: Record<string, Service>;
  networks: Record<string, object>;
};
const OURS = ['migrate', 'api', 'worker'] as const;

/** `${NAME:-default}` as Compose fills it in; a default may hold another one. */
function filledIn(value: string, variables: Variables): string {
  const innermost = /\$\{(\w+):-([^${}]*)\}/;
  const filled = value.replace(innermost, (_, name: string, preset: string) => variables[name] || preset);
  return filled === value ? value : filledIn(filled, variables);
}

/** The variables that a container gets, with these in `.env` and these in the shell. */
function containerOf(name: string, dotenv: Variables, shell: Variables = {}): Variables {
  const variables = { ...dotenv, ...shell };
  const container: Variables = services[name]?.env_file ? { ...dotenv } : {};
  for (const [key, value] of Object.entries(services[name]?.environment ?? {})) {
    if (value !== null) container[key] = filledIn(String(value), variables);
    else if (variables[key] !== undefined) container[key] = variables[key];
  }
  return container;
}

/** Settings that the compose file decides itself, with what each container gets in their place. */
const DECIDED: Readonly<Variables> = {
  // In files, which `credentials` makes.
  DATABASE_URL: '',
  REDIS_URL: '',
  MIGRATE_DATABASE_URL: '',
  DATABASE_DIRECT_URL: '',
  DATABASE_REPLICA_URL: '',
  HOST: '0.0.0.0',
  PORT: '8080',
  MANAGEMENT_HOST: '0.0.0.0',
  MANAGEMENT_PORT: '9090',
  GRPC_PORT: '50051',
};

/** Settings of this machine: its command line, its passwords and what Compose itself does with them. */
const OUTSIDE = new Set([
  'BATON_HOME',
  'WORKERS',
  'APIS',
  'BATON_IMAGE',
  'BATON_URL',
  'BATON_TOKEN',
  'POSTGRES_PASSWORD',
  'BATON_DATABASE_PASSWORD',
  'WORKER_PORT',
  'BATON_AGENTS_DIR',
  'AGENTS_OFFLINE',
  'BATON_ADMIN_URL',
  'BATON_OPERATOR_TOKEN',
]);

/** A value of each setting that is not its default. */
const KEY = Buffer.alloc(32, 7).toString('base64');
const OTHERS: Readonly<Variables> = {
  DATABASE_URL: 'postgres://somebody:else@elsewhere:5432/x',
  REDIS_URL: 'redis://elsewhere:6379',
  BATON_DATABASE_PASSWORD: 'secret1',
  POSTGRES_PASSWORD: 'secret2',
  BATON_TOKEN: 'secret3',
  BATON_MASTER_KEY: KEY,
  BATON_MASTER_KEY_PREVIOUS: KEY,
  CARD_SIGNING_KEY: '{"kty":"EC","d":"x"}',
  LOG_LEVEL: 'debug',
  PUBLIC_URL: 'https://agents.example.com',
  GRPC_PUBLIC_ADDRESS: 'grpc.example.com:443',
};

/** The volume `keys`, as the service that makes the keys fills it (apps/cli/src/master-key.int-spec.ts). */
const keys = mkdtempSync(join(tmpdir(), 'baton-keys-'));
const KEY_FILES = ['master-key', 'database-system-key', 'push-signing-key'] as const;
function makeKeys(): string[] {
  for (const name of KEY_FILES) ensureKeyFile(join(keys, name), name);
  return KEY_FILES.map((name) => readFileSync(join(keys, name), 'utf8'));
}
/** The environment of a container, on this machine. */
const onThisMachine = (container: Variables): Variables => ({
  ...container,
  BATON_MASTER_KEY_FILE: container.BATON_MASTER_KEY_FILE?.replace('/keys/', `${keys}/`) ?? '',
  DATABASE_SYSTEM_KEY_FILE: container.DATABASE_SYSTEM_KEY_FILE?.replace('/keys/', `${keys}/`) ?? '',
  PUSH_SIGNING_KEY_FILE: container.PUSH_SIGNING_KEY_FILE?.replace('/keys/', `${keys}/`) ?? '',
});
beforeAll(makeKeys);
afterAll(() => rmSync(keys, { recursive: true }));

describe('docker-compose.yml', () => {
  const dotenv = {
    ...Object.fromEntries(SETTING_NAMES.map((name) => [name, `value of ${name}`])),
    ...OTHERS,
  };
  const inside = Object.keys(example).filter((name) => !OUTSIDE.has(name));

  it.each(OURS)('hands every setting of .env.example to %s, from .env', (service) => {
    const container = containerOf(service, dotenv);
    const wrong = inside.filter((name) => container[name] !== (DECIDED[name] ?? dotenv[name]));
    expect(wrong).toEqual([]);
  });

  it.each(OURS)('and from the shell to %s, which wins over .env', (service) => {
    const container = containerOf(service, { LIMIT_RUNS_AT_ONCE: '7' }, dotenv);
    // What is missing here: add it, without a value, to `x-baton: environment` of docker-compose.yml.
    const missing = inside.filter((name) => container[name] !== (DECIDED[name] ?? dotenv[name]));
    expect(missing).toEqual([]);
  });

  it('names no setting that there is not', () => {
    const names = OURS.flatMap((service) => Object.keys(services[service]?.environment ?? {}));
    const known = [...SETTING_NAMES, ...SECRET_FILE_NAMES];
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('lets a limit of .env be in force, and a mistyped one be noticed', () => {
    const container = containerOf('api', { LIMIT_RUNS_AT_ONCE: '3', LIMIT_RUN_AT_ONCE: '3' });
    const environment = loadEnvironment({ ...onThisMachine(container), DATABASE_URL: 'postgres://x/y' });
    expect(environment.defaultLimits.runsAtOnce).toBe(3);
    expect(container.LIMIT_RUN_AT_ONCE).toBe('3');
  });

  it('has the limits of every installation unless they are lifted', () => {
    const limitsOf = (dotenv: Variables) =>
      loadEnvironment({ ...onThisMachine(containerOf('api', dotenv)), DATABASE_URL: 'postgres://x/y' })
        .defaultLimits;
    expect(limitsOf({})).toEqual(DEFAULT_LIMITS);
    expect(limitsOf({ LIMIT_TOKENS_PER_DAY: 'none' })).toEqual({ ...DEFAULT_LIMITS, tokensPerDay: null });
  });

  it.each(OURS)('gives %s nothing that it does not need', (service) => {
    expect(services[service]).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.any(String),
    });
  });

  it('keeps the datastores, and what needs nothing else, away from the outside', () => {
    expect(networks.datastores).toEqual({ internal: true });
    for (const service of ['postgres', 'redis', 'migrate']) {
      expect([service, services[service]?.networks]).toEqual([service, ['datastores']]);
    }
    // Callers come in at one, and agents call models and tools from the other.
    expect(services.api?.networks).toEqual(['datastores', 'default', 'observability']);
    expect(services.worker?.networks).toEqual(['datastores', 'agents', 'observability']);
    // Prometheus reads the processes there, and has no way out.
    expect(networks.observability).toEqual({ internal: true });
    // AGENTS_OFFLINE=true leaves the workers no way out.
    expect(networks.agents).toEqual({ internal: '${AGENTS_OFFLINE:-false}' });
  });

  it('keeps the passwords of this machine out of the containers that run agents', () => {
    const { BATON_DATABASE_PASSWORD, POSTGRES_PASSWORD, BATON_TOKEN } = containerOf('worker', dotenv);
    expect({ BATON_DATABASE_PASSWORD, POSTGRES_PASSWORD, BATON_TOKEN }).toEqual({
      BATON_DATABASE_PASSWORD: '',
      POSTGRES_PASSWORD: '',
      BATON_TOKEN: '',
    });
    expect(containerOf('credentials', dotenv)).toMatchObject({
      BATON_DATABASE_PASSWORD: 'secret1',
      POSTGRES_PASSWORD: 'secret2',
    });
  });

  it('has no password of its own: they are made before anything else starts, and each sees only what it needs', () => {
    expect(text).not.toMatch(/PASSWORD:-[^}]/);
    const mounted = (name: string) =>
      services[name]?.volumes?.filter((volume) => volume.includes('credentials:'));
    expect(mounted('postgres')).toEqual(['postgres-credentials:/run/credentials:ro']);
    expect(mounted('redis')).toEqual(['redis-credentials:/run/credentials:ro']);
    for (const service of OURS) {
      const own = service === 'migrate' ? ['owner-credentials:/run/owner:ro'] : [];
      expect([service, mounted(service)]).toEqual([
        service,
        ['baton-credentials:/run/credentials:ro', ...own],
      ]);
    }
    for (const service of ['postgres', 'redis']) {
      expect(services[service]?.depends_on).toEqual({
        credentials: { condition: 'service_completed_successfully' },
      });
    }
    expect(services.credentials).toMatchObject({ network_mode: 'none', cap_drop: ['ALL'], read_only: true });
  });

  it('makes passwords once, and takes those that are set', () => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-credentials-'));
    const make = (environment: Variables = {}): Variables => {
      execFileSync('bash', [join(ROOT, 'docker/make-credentials.sh'), folder], {
        env: { PATH: process.env.PATH, ...environment },
      });
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) =>
        file.isFile(),
      );
      return Object.fromEntries(
        files.map(({ parentPath, name }) => [
          basename(parentPath) === 'owner' ? `owner's ${name}` : name,
          readFileSync(join(parentPath, name), 'utf8'),
        ]),
      );
    };
    for (const name of ['postgres', 'redis', 'baton', 'owner']) mkdirSync(join(folder, name));
    try {
      const first = make();
      expect(make()).toEqual(first);
      const secret = /^[A-Za-z0-9]{40}$/;
      const { 'superuser-password': superuser, 'baton-password': role, password: redis = '' } = first;
      const { 'owner-password': owner = '' } = first;
      for (const password of [superuser, role, owner, redis]) expect(password).toMatch(secret);
      expect(new Set([superuser, role, owner, redis]).size).toBe(4);
      expect(first["owner's database-url"]).toBe(`postgresql://baton_owner:${owner}@postgres:5432/baton`);
      expect(first['redis.conf']).toContain(`requirepass ${redis}\n`);
      const environment = loadEnvironment({
        DATABASE_URL: first['database-url'],
        REDIS_URL: first['redis-url'],
      });
      expect(environment.databaseUrl).toBe(`postgresql://baton:${role ?? ''}@postgres:5432/baton`);
      expect(environment.redisUrl).toBe(`redis://:${redis}@redis:6379`);
      const second = make({ BATON_DATABASE_PASSWORD: 'given' });
      expect(second).toMatchObject({ 'baton-password': 'given', 'superuser-password': superuser });
      expect(second['database-url']).toBe('postgresql://baton:given@postgres:5432/baton');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('has a role for the processes that owns nothing, as `npm start` does', () => {
    const script = readFileSync(join(ROOT, 'docker/create-baton-role.sh'), 'utf8');
    for (const statement of SEPARATE_OWNER) expect(script).toContain(`\n${statement};\n`);
    const seen = OURS.filter((name) =>
      services[name]?.volumes?.some((volume) => volume.startsWith('owner-')),
    );
    expect(seen).toEqual(['migrate']);
    expect(containerOf('migrate', {}).MIGRATE_DATABASE_URL_FILE).toBe('/run/owner/database-url');
    for (const name of ['api', 'worker'])
      expect(containerOf(name, {}).MIGRATE_DATABASE_URL_FILE).toBeUndefined();
  });

  it.each([
    ['without .env', {}],
    ['with a copy of .env.example', example],
  ])('runs with the defaults %s', (_, variables) => {
    for (const service of OURS) {
      const { DATABASE_URL, REDIS_URL, ...container } = containerOf(service, variables);
      expect([DATABASE_URL, REDIS_URL]).toEqual(['', '']);
      const defaults = loadEnvironment({ DATABASE_URL: 'postgres://x/y' });
      const { defaultLimits, ...others } = loadEnvironment({
        ...onThisMachine(container),
        DATABASE_URL: 'postgres://x/y',
      });
      expect([others.masterKey?.length, others.masterKeyFile]).toEqual([32, join(keys, 'master-key')]);
      const { masterKey: _key, masterKeyFile: _file, masterKeySetting: _setting, ...plain } = others;
      const { databaseUrl, redisUrl, workerPort, managementHost, managementPort, agentsDir, ...more } = plain;
      const { grpcPort, ...rest } = more;
      expect(defaults).toMatchObject(rest);
      expect(defaultLimits).toEqual(DEFAULT_LIMITS);
      expect([databaseUrl, redisUrl]).toEqual(['postgres://x/y', undefined]);
      expect([managementHost, managementPort]).toEqual(['0.0.0.0', 9090]);
      expect(grpcPort).toBe(50051);
      expect([workerPort, agentsDir]).toEqual(
        service === 'worker' ? [8081, '/agents'] : [undefined, undefined],
      );
    }
    expect(SETTING_NAMES).toContain('PUBLIC_URL');
  });

  it('makes the keys at the first start, and keeps them', () => {
    const made = makeKeys();
    const [key, systemKey, pushKey = ''] = made;
    expect(parseSigningKey(pushKey).alg).toBe('ES256');
    for (const each of [key, systemKey]) expect(each).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(systemKey).not.toBe(key);
    expect(makeKeys()).toEqual(made);
    for (const service of OURS) {
      expect(services[service]?.volumes).toContain('keys:/keys:ro');
      expect(containerOf(service, {})).toMatchObject({
        BATON_MASTER_KEY_FILE: '/keys/master-key',
        DATABASE_SYSTEM_KEY_FILE: '/keys/database-system-key',
        PUSH_SIGNING_KEY_FILE: '/keys/push-signing-key',
      });
    }
    expect(services['master-key']).toMatchObject({
      command: ['node', 'dist/apps/cli/src/main.js', 'master-key', 'create', '/keys'],
      volumes: ['keys:/keys', 'baton-credentials:/run/credentials:ro'],
      depends_on: { postgres: { condition: 'service_healthy' } },
    });
    expect(services.migrate?.depends_on).toMatchObject({
      'master-key': { condition: 'service_completed_successfully' },
    });
  });

  it('runs the image of a release, and builds one from the source without it', () => {
    const ours = [...OURS, 'master-key'];
    for (const name of ours) {
      const { image = '', build } = services[name]!;
      expect([filledIn(image, {}), build]).toEqual(['baton:local', '.']);
      expect(filledIn(image, { BATON_IMAGE: 'registry.example.com/baton:v1' })).toBe(
        'registry.example.com/baton:v1',
      );
    }
  });

  it('names all images by digest with the file for that, and the same major versions as without it', () => {
    const digest = /@sha256:[0-9a-f]{64}$/;
    const named = Object.entries({ ...services, ...PROXY.services })
      .filter(
        ([name, { build, image }]) => image !== undefined && build === undefined && name !== 'master-key',
      )
      .map(([name, { image }]) => [name, DIGESTS.services[name]?.image ?? image!, image!] as const);
    expect(named.map(([name]) => name).sort()).toEqual([
      'collector',
      'credentials',
      'grafana',
      'jaeger',
      'loki',
      'postgres',
      'prometheus',
      'proxy',
      'redis',
    ]);
    for (const [name, pinned, image] of named) {
      expect([name, pinned]).toEqual([name, expect.stringMatching(digest)]);
      if (pinned !== image) expect(pinned.startsWith(`${image}.`)).toBe(true);
    }
  });

  it('bounds the log and the memory of each container', () => {
    for (const [name, service] of Object.entries({ ...services, proxy: PROXY.services.proxy! })) {
      expect([name, service.logging]).toEqual([
        name,
        { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
      ]);
      expect([name, service.mem_limit]).toEqual([name, expect.stringMatching(/^\d+[mg]$/)]);
    }
  });

  it('keeps Redis below the memory of its container, and from deleting the queue', () => {
    const { command = [], mem_limit: limit = '' } = services.redis!;
    const valueOf = (option: string) => command[command.indexOf(option) + 1] ?? '';
    expect(Number.parseInt(limit, 10)).toBeGreaterThanOrEqual(
      2 * Number.parseInt(valueOf('--maxmemory'), 10),
    );
    expect([limit, valueOf('--maxmemory')].map((text) => text.replace(/^\d+/, ''))).toEqual(['g', 'gb']);
    expect(valueOf('--maxmemory-policy')).toBe('noeviction');
  });

  it('gives the tests its Redis', () => {
    const [snapshots, ...lines] = composeRedis();
    expect(snapshots).toMatch(/^save \d/);
    expect(lines).toEqual(['appendonly yes', 'maxmemory 1gb', 'maxmemory-policy noeviction']);
  });

  it('has a proxy with TLS whose addresses alone are trusted, and no other port on the machine', () => {
    const { api, proxy } = PROXY.services;
    expect(api?.ports).toEqual([]);
    expect(proxy?.ports).toEqual(['80:80', '443:443', '443:443/udp']);
    const { networks: added } = PROXY;
    expect(added.proxied?.internal).toBe(true);
    expect(added.proxied?.ipam).toEqual({ config: [{ subnet: api?.environment.TRUSTED_PROXIES }] });
    // Another network of both would give the proxy an address that is not trusted.
    const inside = [...(services.api?.networks ?? []), ...(api?.networks ?? [])];
    expect(proxy?.networks?.filter((name) => inside.includes(name))).toEqual(['proxied']);
    const others = { ...services, ...PROXY.services };
    const reached = Object.keys(others).filter((name) => others[name]?.networks?.includes('proxied'));
    expect(reached.sort()).toEqual(['api', 'proxy']);
    // All processes have the same URL.
    for (const { environment } of [PROXY.services.worker!, proxy!])
      expect(environment.PUBLIC_URL).toBe(api?.environment.PUBLIC_URL);
    expect(
      [{} as Variables, { APIS: '5' }].map((variables) => filledIn(api?.deploy?.replicas ?? '', variables)),
    ).toEqual(['2', '5']);
  });

  it('has a proxy that passes HTTP and gRPC on at once, and never uses a connection that an API closes', () => {
    const caddyfile = readFileSync(join(ROOT, 'deploy/caddy/Caddyfile'), 'utf8');
    const ports = [...caddyfile.matchAll(/dynamic a api (\d+)/g)].map(([, port]) => Number(port));
    expect(ports.sort()).toEqual([50051, 8080]);
    expect(caddyfile).toContain('flush_interval -1');
    const idle = [...caddyfile.matchAll(/keepalive (\d+)s/g)].map(([, seconds]) => Number(seconds));
    const { keepAliveSeconds } = loadEnvironment({ DATABASE_URL: 'postgres://x/y' });
    expect(idle).toHaveLength(2);
    for (const seconds of idle) expect(seconds).toBeLessThan(keepAliveSeconds);
  });

  it('publishes the two ports of the API and no other, and dashboards on this machine alone', () => {
    const published = Object.entries(services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => [name, typeof port === 'string' ? port : port.target]),
    );
    expect(published).toEqual([
      ['api', 8080],
      ['api', 50051],
      ['grafana', '127.0.0.1:${GRAFANA_PORT:-3000}:3000'],
    ]);
  });

  it('starts what shows metrics and traces only if it is asked to, with as few rights as the rest', () => {
    const extra = ['prometheus', 'grafana', 'collector', 'jaeger', 'loki'];
    const started = Object.keys(services).filter((name) => !services[name]?.profiles);
    expect(Object.keys(services).filter((name) => !started.includes(name))).toEqual(extra);
    for (const name of extra) {
      expect(services[name]).toMatchObject({
        profiles: ['observability'],
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
      for (const volume of services[name]?.volumes ?? []) {
        const [file = ''] = volume.split(':');
        if (file.startsWith('./')) expect([file, existsSync(join(ROOT, file))]).toEqual([file, true]);
      }
    }
  });

  it('follows PORT with what it publishes and with the URL on cards', () => {
    const [published] = (services.api?.ports ?? []).filter((port) => typeof port !== 'string');
    const look = (variables: Variables) => ({
      port: filledIn(published?.published ?? '', variables),
      host: filledIn(published?.host_ip ?? '', variables),
      inside: containerOf('api', variables).PORT,
      cards: containerOf('api', variables).PUBLIC_URL,
    });
    expect(look({})).toEqual({
      port: '8080',
      host: '0.0.0.0',
      inside: '8080',
      cards: 'http://localhost:8080',
    });
    expect(look({ PORT: '8391', HOST: '127.0.0.1' })).toEqual({
      port: '8391',
      host: '127.0.0.1',
      inside: '8080',
      cards: 'http://localhost:8391',
    });
    expect(look({ PORT: '8391', PUBLIC_URL: 'https://a.example' }).cards).toBe('https://a.example');
    expect(published?.target).toBe(8080);
  });

  it('starts WORKERS workers, with the agents of BATON_AGENTS_DIR', () => {
    const { deploy, volumes } = services.worker ?? {};
    expect([
      filledIn(deploy?.replicas ?? '', {}),
      filledIn(deploy?.replicas ?? '', { WORKERS: '3' }),
    ]).toEqual(['1', '3']);
    expect(filledIn(volumes?.[0] ?? '', { BATON_AGENTS_DIR: './mine' })).toBe('./mine:/agents:ro');
  });

  it('lets processes end as slowly as they may', () => {
    const graceOf = (service: string, variables: Variables) =>
      filledIn(services[service]?.stop_grace_period ?? '', variables);
    expect([graceOf('api', {}), graceOf('worker', {})]).toEqual(['10s5000ms', '10s10000ms']);
    expect(graceOf('worker', { WORKER_GRACE_MS: '90000' })).toBe('10s90000ms');
  });

  it.each(['postgres', 'redis', 'api', 'worker'])(
    'starts %s again when it dies, and asks how it is',
    (service) => {
      expect(services[service]).toMatchObject({
        restart: 'unless-stopped',
        healthcheck: { test: expect.any(Array) },
      });
    },
  );
});
