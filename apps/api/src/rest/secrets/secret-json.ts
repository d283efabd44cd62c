import { ProtocolError } from '@baton/a2a';
import { SecretError, type SecretInfo } from '@baton/identity';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';

export const origins = z
  .array(z.string())
  .describe('The origins that may receive it, such as https://crm.example.com');

export const secretAnswer = z
  .object({
    name: z.string(),
    origins: origins.nullable().describe('Null: an earlier release stored it, and it may go anywhere'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .meta({ id: 'Secret' });

export type SecretAnswer = z.infer<typeof secretAnswer>;

export const noSuchSecret = (name: string): ProtocolError =>
  new ProtocolError('not-found', `Secret not found: ${name}`);

/** Throws `invalid-params` for a fault of a secret. */
export function explainSecret(error: unknown): never {
  if (!(error instanceof SecretError)) throw error;
  const { message, field } = error;
  const violations = field === undefined ? [] : [{ field, description: message }];
  throw new ProtocolError('invalid-params', message, violations.length > 0 ? { violations } : {});
}

/** Without its value. */
export const encodeSecret = ({ name, origins, createdAt, updatedAt }: SecretInfo): SecretAnswer => ({
  name,
  origins,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
