import { executorConfig } from './executor-config.js';

const REFUSED = { message: 'is a secret of Baton, which agents do not get', path: ['env', 0] };

const problems = (name: string) => executorConfig.safeParse({ env: [name] }).error?.issues ?? [];

describe('the environment of an executor', () => {
  it.each([
    'DATABASE_URL',
    'REDIS_URL',
    'CARD_SIGNING_KEY',
    'BATON_MASTER_KEY',
    'BATON_MASTER_KEY_PREVIOUS',
    'BATON_DATABASE_PASSWORD',
    'BATON_TOKEN',
    'POSTGRES_PASSWORD',
    // Not settings of this version.
    'BATON_SECRET',
    'BATON_API_TOKENS',
    'BATON_KEY_2',
  ])('never gets %s', (name) => {
    expect(problems(name)).toEqual([expect.objectContaining(REFUSED)]);
  });

  it.each(['PGPASSWORD', 'VAULT_TOKEN', 'BAO_TOKEN'])(
    'never gets %s, which leads to such a secret',
    (name) => {
      expect(problems(name)[0]?.message).toBe('leads to secrets of Baton, which agents do not get');
    },
  );

  it.each(['OPENAI_API_KEY', 'NOTES_TOKEN', 'TOKEN_CACHE_MS', 'BATON_TOKENIZER'])('may get %s', (name) => {
    expect(problems(name)).toEqual([]);
  });
});
