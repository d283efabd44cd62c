import { OPERATOR_ACTOR, type TrustedIssuer } from '@baton/database';
import { TrustedIssuers } from './trusted-issuers.js';

const ROW = { id: 'i1', tenantId: 't1', issuer: 'https://id.example.com' } as TrustedIssuer;

it('the process that removes an issuer forgets it before it answers, without waiting for others', async () => {
  const forgotten: string[] = [];
  const away = async (): Promise<never> => {
    throw new Error('messaging is away');
  };
  const issuers = new TrustedIssuers(
    { find: async () => ({ id: 't1' }) } as never,
    { remove: async () => ({ issuer: ROW, signedOut: [] }) } as never,
    { publishControl: away },
    {} as never,
    { forget: (issuer) => void forgotten.push(issuer) },
    { revokeDeleted: async () => undefined },
  );
  expect(await issuers.remove('acme', 'i1', OPERATOR_ACTOR)).toEqual({ ...ROW, tenant: 'acme' });
  expect(forgotten).toEqual([ROW.issuer]);
});
