import { turnSecrets } from '../../../../test/support/agents/turns.js';
import { readSecretHeaders, secretHeaders } from './secret-headers.js';

const SECRETS = { crm: 'key-1\n', broken: 'a\nb' };

const read = (headers: unknown, secrets: Record<string, string> = SECRETS) =>
  readSecretHeaders(turnSecrets(secrets), secretHeaders.parse(headers), ['https://crm.example.com']);

describe('headers with secrets', () => {
  it('are sent with the values of the tenant', async () => {
    const headers = {
      Authorization: { secret: 'crm', prefix: 'Bearer ' },
      'X-Key': { secret: 'crm' },
      'X-Team': 'a',
    };
    expect(await read(headers)).toEqual({ Authorization: 'Bearer key-1', 'X-Key': 'key-1', 'X-Team': 'a' });
  });

  it('name the secret that is missing or of no use, and never its value', async () => {
    const Authorization = { secret: 'crm' };
    const missing = 'the secret "crm" of the header Authorization is not set';
    await expect(read({ Authorization }, {})).rejects.toThrow(missing);
    const broken = new Error('the value of the secret "broken" cannot be sent as the header X-Key');
    await expect(read({ 'X-Key': { secret: 'broken' } })).rejects.toEqual(broken);
  });

  it.each([
    [{ 'bad name': 'x' }, 'is not the name of a header'],
    [{ Host: 'x' }, 'is a header that the platform sets itself'],
    [{ 'X-A': 'a\r\nX-B: b' }, 'must be text on one line'],
    [{ 'X-A': { secret: '../x' } }, 'is not the name of a secret'],
    [{ 'X-A': { secret: 'x', value: 'y' } }, 'value'],
  ])('refuse %j', (headers, reason) => {
    const result = secretHeaders.safeParse(headers);
    expect(JSON.stringify(result.error?.issues)).toContain(reason);
  });
});
