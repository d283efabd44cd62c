import { settingsReport, unknownSettings } from './check-settings.js';
import { SETTING_NAMES } from './settings.js';

const named = (...names: string[]) =>
  unknownSettings(Object.fromEntries(names.map((name) => [name, 'hunter2'])));

describe('names that resemble a setting and are none', () => {
  it.each([
    ['LIMIT_RUN_AT_ONCE', 'LIMIT_RUNS_AT_ONCE'],
    ['LIMIT_STORED_BYTE', 'LIMIT_STORED_BYTES'],
    ['WORKER_CONCURENCY', 'WORKER_CONCURRENCY'],
    ['WORKER_CONCURRENT', 'WORKER_CONCURRENCY'],
    ['BATON_AGENT_DIR', 'BATON_AGENTS_DIR'],
    ['BATON_MASTERKEY', 'BATON_MASTER_KEY'],
    ['limit_runs_at_once', 'LIMIT_RUNS_AT_ONCE'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['REDIS_URI', 'REDIS_URL'],
    ['PUBLICURL', 'PUBLIC_URL'],
    ['OUTBOUND_ALOW', 'OUTBOUND_ALLOW'],
    ['MAX_ATEMPTS', 'MAX_ATTEMPTS'],
  ])('%s: did you mean %s?', (name, meant) => {
    expect(named(name)).toEqual([`${name} is not a setting; did you mean ${meant}?`]);
  });

  it('a name with our prefix that is like none of ours', () => {
    expect(named('BATON_COLOUR_OF_THE_CONSOLE')).toEqual([
      'BATON_COLOUR_OF_THE_CONSOLE is not a setting: .env.example lists all settings.',
    ]);
  });

  it('are listed in order, without their values and without control characters', () => {
    const lines = named('LIMIT_RUN_AT_ONCE', 'BATON_\u001b[2J\nx');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^BATON_\?+2J\?x is not a setting/);
    expect(lines.join()).not.toContain('hunter2');
  });

  it('are not the settings there are', () => {
    expect(named(...SETTING_NAMES)).toEqual([]);
  });

  it.each([
    'PATH HOME SHELL USER LANG TERM HOSTNAME PWD EDITOR TZ CI COLORTERM LS_COLORS DEBUG',
    'NODE_ENV NODE_OPTIONS npm_config_cache npm_lifecycle_event INIT_CWD JEST_WORKER_ID',
    'POSTGRES_USER POSTGRES_DB PGHOST PGPASSWORD REDIS_HOST REDIS_PASSWORD REDIS_TLS_URL DATABASE_HOST DB_URL',
    'LOG_FORMAT MAX_CONNECTIONS PUBLIC_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY OPENAI_API_KEY API_KEY TOKEN',
    'SSL_CERT_FILE KUBERNETES_SERVICE_HOST BATON_SERVICE_HOST BATON_SERVICE_PORT_HTTP BATON_PORT_8080_TCP_ADDR',
  ])('are not those of other programs: %s', (names) => {
    expect(named(...names.split(' '))).toEqual([]);
  });

  it('are not the links that Kubernetes makes for services that are called as we are', () => {
    expect(unknownSettings({ BATON_PORT: 'tcp://10.0.0.7:8080' })).toEqual([]);
    expect(unknownSettings({ BATON_PORT: '8080' })).toHaveLength(1);
  });
});

describe('a report on the settings', () => {
  it('has what is wrong, what is unknown and what is set, each by its name and without values', () => {
    const report = settingsReport({
      BATON_MASTER_KEY: 'hunter2',
      WORKERS: '0',
      LIMIT_RUN_AT_ONCE: '3',
      LEASE_MS: '5000',
      PORT: '',
    });
    expect(report).toEqual({
      problems: [
        expect.stringMatching(/^BATON_MASTER_KEY is not valid/),
        'WORKERS is "0": set it to a whole number from 1 to 64.',
      ],
      unknown: ['LIMIT_RUN_AT_ONCE is not a setting; did you mean LIMIT_RUNS_AT_ONCE?'],
      set: ['BATON_MASTER_KEY', 'LEASE_MS', 'WORKERS'],
    });
    expect(JSON.stringify(report)).not.toContain('hunter2');
  });

  it('takes an environment without a database, which `npm start` brings', () => {
    expect(settingsReport({})).toEqual({ problems: [], unknown: [], set: [] });
    expect(settingsReport({ DATABASE_URL: 'mysql://x' }).problems).toHaveLength(1);
  });
});
